"""Text for e-classes: a variable of the program, or a short term."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from relax_egraph.egraph.node import CALLS, LEAF, LOAD, OPAQUE, SCALAR, STORE, Node
from relax_egraph.egraph.readback.tables import Key
from relax_egraph.egraph.recording.database import Database
from relax_egraph.ir import dims
from relax_egraph.ir.expr import Constant, Expr, PrimValue, Var
from relax_egraph.ir.struct_info import ShapeStructInfo, shape_text

_FORMS = 3
"""The most nodes of a class in a message."""


class Names:
    """Text for the classes of one e-graph, from `variables` and from `leaves` by key."""

    def __init__(
        self, database: Database, leaves: Mapping[int, Expr], variables: Mapping[str, Key]
    ) -> None:
        self.database, self.leaves, self.variables = database, leaves, variables

    @cached_property
    def named(self) -> Mapping[Key, str]:
        """By class, the first variable of the program with its value."""
        names: dict[Key, str] = {}
        for name, key in self.variables.items():
            names.setdefault(key, name)
        for key, node in self._leaves():
            leaf = self.leaves[node.key]
            if isinstance(leaf, Var):
                names[key] = leaf.name
        return names

    def of(self, value: Any, depth: int = 1) -> str:
        """The text of a variable's value; a class is a term at most `depth` deep."""
        match value:
            case Key():
                return self._class(value, depth)
            case bool():
                return str(value).lower()
            case float():
                return number_text(value)
            case str():
                return f'"{value}"'
            case tuple():
                return self._vector(value, depth)
            case None:
                return "nothing"
            case PrimValue():
                return self.of(value.value, depth)
            case _:
                return dims.text(value) if not isinstance(value, int) else str(value)

    def info(self, key: Key) -> str:
        """The dtype and shape of a class: ``float32[n, 4]``."""
        if key.sort == "Tuple":
            return "a tuple"
        tensor = key.value if key.sort == "Tensor" else self.database.memory.get(key.value)
        if tensor is None:
            return ""
        shape, dtype = self.database.shape(tensor), self.database.dtype(tensor) or ""
        return dtype if shape is None else f"{dtype}[{', '.join(map(dims.text, shape))}]"

    def holds(self, key: Key) -> str:
        """The nodes of a class, the shortest first: ``multiply(x, 0.5), exp(y)``."""
        nodes = [n for n in self.database.nodes.get(key, ()) if n.op not in (STORE, LOAD)]
        shown = {self._node(n, 1) for n in nodes if n.op not in _LEAVES}
        forms = sorted(shown, key=lambda form: (len(form), form))  # nodes of the program are short
        if forms:
            more = len(forms) - _FORMS
            return ", ".join(forms[:_FORMS]) + (f" and {more} more" if more > 0 else "")
        return self.origin(key)

    def origin(self, key: Key) -> str:
        """The kind of a value that no operator computes: ``an input``, ``a constant``."""
        for node in self.database.nodes.get(key, ()):
            leaf = self.leaves[node.key] if node.op == LEAF else None
            if isinstance(leaf, Constant):
                return "a constant"
            if leaf is not None:
                return "an input"
            if node.op == SCALAR:
                return f"the number {number_text(node.scalar)}"
            if node.op == OPAQUE:
                return "an opaque binding"
        return "no operator"

    def is_leaf(self, key: Key) -> bool:
        """Whether no operator computes the value of a class."""
        return all(n.op in _LEAVES for n in self.database.nodes.get(key, ()))

    def _leaves(self) -> Iterator[tuple[Key, Node[Key]]]:
        for key, nodes in self.database.nodes.items():
            for node in nodes:
                if node.op == LEAF:
                    yield key, node

    def _class(self, key: Key, depth: int) -> str:
        if key in self.named:
            return self.named[key]
        tensor = key.value if key.sort == "Tensor" else self.database.memory.get(key.value)
        if tensor is not None and tensor in self.database.scalars:
            return number_text(self.database.scalars[tensor], self.database.dtype(tensor))
        if key.sort == "Kernel" and tensor is not None:
            return self._class(Key("Tensor", tensor), depth)
        nodes = [n for n in self.database.nodes.get(key, ()) if n.op not in (STORE, LOAD)]
        for node in nodes:
            leaf = self.leaves[node.key] if node.op == LEAF else None
            if isinstance(leaf, Constant):
                return f"constant {leaf.data.dtype.name}{list(leaf.data.shape)}"
        return self._node(nodes[0], depth) if nodes else self.info(key) or key.sort

    def _node(self, node: Node[Key], depth: int) -> str:
        """A node, its operands by name: ``sum(x, axis=(1,))``."""
        if node.op == LEAF:
            return "an input"
        if depth < 0:
            return "…"
        if node.op in CALLS:
            return f"{node.callee}({', '.join(self.of(c, depth - 1) for c in node.operands)})"
        shown = [self._child(child, depth - 1) for child in node.children if child is not None]
        attrs = () if node.op in _LEAVES else node.attrs
        shown += [f"{name}={_attribute(value)}" for name, value in attrs]
        return f"{node.op}({', '.join(shown)})"

    def _child(self, child: Any, depth: int) -> str:
        if isinstance(child, ShapeStructInfo):
            return shape_text(child.values or ())
        return self.of(child, depth)

    def _vector(self, values: tuple[Any, ...], depth: int) -> str:
        shown = [self.of(v, depth) for v in values]
        return f"({', '.join(shown)}{',' * (len(shown) == 1)})"


_LEAVES = (LEAF, SCALAR, OPAQUE)


def _attribute(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def number_text(value: float, dtype: str | None = None) -> str:
    """The shortest text of a number that is distinct among the numbers of `dtype`."""
    single = np.float32(value)
    if dtype != "float64" and float(single) == value:
        return str(single)
    return f"{value:.10g}" if len(repr(value)) > 12 else repr(value)
