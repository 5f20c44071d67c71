"""The state of a model during its conversion, and the nodes that could not be converted."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import onnx

from relax_egraph.errors import ModelError
from relax_egraph.frontends.onnx.tensors import Store
from relax_egraph.frontends.onnx.values import Symbols
from relax_egraph.ir.names import unused

MOST_NODES = 200_000
"""The most nodes of a model after its functions are inlined."""


@dataclass(frozen=True, slots=True)
class Problem:
    """An unsupported node, by its name or that of its first output, and the reason."""

    node: str
    op: str
    version: int
    reason: str

    def __str__(self) -> str:
        return f"{self.node or 'a node'} ({self.op}, opset {self.version}): {self.reason}"


@dataclass(slots=True)
class Model:
    """A model being converted.

    `functions` are its own functions, by domain and name; `declared` are declared extents of
    tensors, by name, with ``None`` for an unknown one; `failed` are names of values that could not
    be converted.
    """

    store: Store
    functions: Mapping[tuple[str, str], onnx.FunctionProto]
    declared: Mapping[str, tuple[int | None, ...]]
    symbols: Symbols
    problems: list[Problem] = field(default_factory=list[Problem])
    failed: set[str] = field(default_factory=set[str])
    nodes: int = 0
    _names: set[str] = field(default_factory=lambda: {"main"})

    def count_node(self) -> None:
        """Count one more node; raises `ModelError` if there are too many."""
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise ModelError(f"the model has more than {MOST_NODES} nodes in its functions")

    def function_name(self, name: str) -> str:
        """A unique name for a function."""
        return unused(name, self._names)

    def refused(self) -> ModelError:
        """The exception that lists the distinct problems."""
        lines = list(dict.fromkeys(map(str, self.problems)))
        head = "the model has a node" if len(lines) == 1 else f"the model has {len(lines)} nodes"
        return ModelError(
            f"{head} that cannot be converted:\n" + "\n".join(f"  {x}" for x in lines)
        )
