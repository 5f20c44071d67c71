"""What is known of a model while its graphs are converted, and what could not be converted."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import onnx

from relax_egraph.errors import ModelError
from relax_egraph.frontends.onnx.tensors import Store
from relax_egraph.frontends.onnx.values import Symbols
from relax_egraph.ir.names import unused

MOST_NODES = 200_000
"""How many nodes a model may have once its functions are where they are called."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A node that could not be converted, by its name or the first name it gives, and why."""

    node: str
    op: str
    version: int
    reason: str

    def __str__(self) -> str:
        return f"{self.node or 'a node'} ({self.op}, opset {self.version}): {self.reason}"


@dataclass(slots=True)
class Model:
    """A model being converted.

    `functions` are its own, by domain and name; `declared` are the extents that it says tensors
    have, by name, ``None`` for one that it does not say; `failed` are names of what could not be
    converted.
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
        """Take note of one more node; raises `ModelError` if there are too many."""
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise ModelError(f"the model has more than {MOST_NODES} nodes in its functions")

    def function_name(self, name: str) -> str:
        """A name for a function that no other has."""
        return unused(name, self._names)

    def refused(self) -> ModelError:
        """The exception that says all problems, each once."""
        lines = list(dict.fromkeys(map(str, self.problems)))
        head = "the model has a node" if len(lines) == 1 else f"the model has {len(lines)} nodes"
        return ModelError(f"{head} without a counterpart:\n" + "\n".join(f"  {x}" for x in lines))
