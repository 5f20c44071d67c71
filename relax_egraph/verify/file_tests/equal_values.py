"""A check that the nodes of each e-class compute equal values on random inputs.

The value of a class is that of its first node that can be computed; every other node of the class
must compute the same value.
"""

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from relax_egraph.egraph.encoding.narrowing import stored
from relax_egraph.egraph.node import CALLS, LEAF, OPAQUE, SCALAR, Child, Node
from relax_egraph.egraph.readback.tables import Key, Tables
from relax_egraph.egraph.rulebook.vocabulary import operators
from relax_egraph.ir import dims
from relax_egraph.ir.struct_info import ShapeStructInfo, shape_text
from relax_egraph.verify.values.applied import Result, computed, exact
from relax_egraph.verify.values.inputs import Array
from relax_egraph.verify.values.tolerance import Computed

Value: TypeAlias = Array | tuple[Array, ...]

_DEEPEST = 2
"""The depth to which messages write out operands without a name."""

TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}


class Unsound(AssertionError):
    """Two nodes of one class have different values, or a node has none; the message shows both."""


def check_sound(tables: Tables, seed: int) -> int:
    """Compare all nodes of all classes; return the number of nodes that equal an earlier one.

    Every symbol has a random extent, every leaf random values.  Raises `Unsound`.
    """
    run = _Run(tables, seed)
    for key, node in run.ready():
        value = run.value(key, node)
        if value is None:
            continue
        run.computed.add((key, node))
        if key not in run.values:
            run.values[key], run.first[key] = value, node
        elif not _same(_arrays(run.values[key]), _arrays(value)):
            raise Unsound(run.difference(key, node, value))
    return len(run.computed) - len(run.values)


class _Run:
    """The values of classes, the `computed` nodes, and the `first` computed node of each class."""

    def __init__(self, tables: Tables, seed: int) -> None:
        self.tables, self.rng = tables, np.random.default_rng(seed)
        shapes = (tables.shape(key[1]) or () for key in tables.nodes)
        names = sorted({s for shape in shapes for d in shape for s in dims.symbols(d)})
        self.extents = {name: int(self.rng.integers(2, 6)) for name in names}
        self.values: dict[Key, Result] = {}
        self.first: dict[Key, Node[Key]] = {}
        self.computed: set[tuple[Key, Node[Key]]] = set()
        self._names = {key: name for name, key in tables.lets.items()}

    def ready(self) -> Iterator[tuple[Key, Node[Key]]]:
        """Nodes whose operands have values, until no more nodes become computable."""
        progress = True
        while progress:
            before = len(self.computed)
            for key, nodes in self.tables.nodes.items():
                for node in nodes:
                    if (key, node) not in self.computed and self._can(node):
                        yield key, node
            progress = len(self.computed) > before

    def _can(self, node: Node[Key]) -> bool:
        return all(c in self.values for c in node.operands)

    def value(self, key: Key, node: Node[Key]) -> Result | None:
        """The value of a node; ``None`` for a node without one of its own."""
        if node.op == OPAQUE or (node.op == LEAF and key in self.values):
            return None
        if node.op == LEAF:
            return exact(self._leaf(key))
        try:
            return computed(node, self.values.get, self.extents)
        except Exception as problem:  # numpy may raise any exception
            shown = self._written(node)
            raise Unsound(f"{shown} has no value: {problem}") from problem

    def _leaf(self, key: Key) -> Array:
        tables, tensor = self.tables, key.value
        known, dtype = tables.shape(tensor), tables.dtype(tensor) or "float32"
        shape = (3,) if known is None else tuple(dims.evaluate(d, self.extents) for d in known)
        if tensor in tables.scalars:
            return np.full(shape, tables.scalars[tensor], dtype)
        drawn = self.rng.standard_normal(shape)
        if tensor in tables.invertible:
            drawn = np.copysign(0.1 + np.abs(drawn), drawn)
        if tensor in tables.narrow:  # values that storage in a narrow dtype does not change
            return stored(drawn.astype(dtype), *tables.narrow[tensor])
        return drawn > 0 if dtype == "bool" else drawn.astype(dtype)

    def difference(self, key: Key, node: Node[Key], value: Result) -> str:
        """The message about two nodes of a class, with their values in this run."""
        nodes = self._written(self.first[key]), self._written(node)
        shown = _apart(_arrays(self.values[key]), _arrays(value))
        width = max(map(len, nodes))
        lines = [f"{name:<{width}}  is {text}" for name, text in zip(nodes, shown, strict=True)]
        sizes = ", ".join(f"{name} = {size}" for name, size in self.extents.items())
        return "\n".join(
            ("one class has two values:", *lines, *((f"at {sizes}",) if sizes else ()))
        )

    def _written(self, node: Node[Key], depth: int = 0) -> str:
        """A node in the syntax of rules, with the names of the case for its operands."""

        def child(c: Child[Key]) -> str:
            match c:
                case Key():
                    known = self._names.get(c) or (depth < _DEEPEST and self.first.get(c))
                    return (
                        self._written(known, depth + 1) if isinstance(known, Node) else known or "…"
                    )
                case tuple():
                    return f"(vec-of {' '.join(map(child, c))})"
                case ShapeStructInfo():
                    return shape_text(c.values or ())
                case _:
                    return str(c)

        if node.op == LEAF:
            return f"(Leaf {node.key})"
        if node.op == SCALAR:
            return f"(R.const {node.scalar})"
        if node.op in CALLS:
            operands, shape = map(child, node.children)
            return f'(R.{node.op} "{node.callee}" {operands} {shape} "{node.call_info.dtype}")'
        head = f"R.{node.op}" if node.op in operators() else node.op
        inside = [*map(child, node.children), *(str(v) for _, v in node.attrs)]
        return f"({' '.join((head, *inside))})"


def _arrays(of: Result) -> Value:
    return of.value if isinstance(of, Computed) else tuple(part.value for part in of)


def _same(a: Value, b: Value) -> bool:
    if isinstance(a, tuple) or isinstance(b, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    same_form = a.shape == b.shape and a.dtype == b.dtype
    return same_form and np.allclose(a, b, **TOLERANCE, equal_nan=True)


def _apart(a: Value, b: Value) -> tuple[str, str]:
    """Text for two values that differ: their shapes and dtypes, or their first unequal elements."""
    if isinstance(a, tuple) or isinstance(b, tuple):
        parts = (p for p in zip(a, b, strict=False) if not _same(*p))
        first = next(parts, None)
        return _apart(*first) if first else (f"{len(a)} values", f"{len(b)} values")
    if a.shape != b.shape or a.dtype != b.dtype:
        return _form(a), _form(b)
    places = np.argwhere(~np.isclose(a, b, **TOLERANCE, equal_nan=True))
    at = tuple(int(k) for k in places[0])
    place = f" at {list(at)}" if at else ""
    return f"{a[at]!s}{place}", f"{b[at]!s}{place}"


def _form(value: Array) -> str:
    return f"of shape {value.shape} and dtype {value.dtype}"
