"""Whether what an e-graph holds equal is equal: every node computed on random inputs.

Each class takes its value from the first of its nodes that can be computed, and every other node
of the class must give the same.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, cast

import numpy as np

from relax_egraph.egraph import view
from relax_egraph.egraph.encoding.narrowing import stored
from relax_egraph.egraph.readback.tables import Key, Tables, Term, TermChild
from relax_egraph.egraph.rulebook.vocabulary import operators
from relax_egraph.ir import dims
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.expr import PrimValue
from relax_egraph.ir.struct_info import Shape, ShapeStructInfo, shape_text
from relax_egraph.verify.values.inputs import Array

Value: TypeAlias = Array | tuple[Array, ...]

_DEEPEST = 2
"""How deep operands are written that the case has no name for."""

TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}


class Unsound(AssertionError):
    """Two nodes of one class have different values, or one has none; says both, and where."""


def check_sound(tables: Tables, seed: int) -> int:
    """Compare all nodes of all classes; return how many were found equal to another one.

    Raises `Unsound`.  Every symbol has a random extent, every leaf random values.
    """
    run = _Run(tables, seed)
    for key, term in run.ready():
        value = run.value(key, term)
        if value is None:
            continue
        run.computed.add((key, term))
        if key not in run.values:
            run.values[key], run.first[key] = value, term
        elif not _same(run.values[key], value):
            raise Unsound(run.difference(key, term, value))
    return len(run.computed) - len(run.values)


class _Run:
    """Values of classes; `computed` are the nodes that were, `first` that of each class."""

    def __init__(self, tables: Tables, seed: int) -> None:
        self.tables, self.rng = tables, np.random.default_rng(seed)
        shapes = (tables.shape(key[1]) or () for key in tables.terms)
        names = sorted({s for shape in shapes for d in shape for s in dims.symbols(d)})
        self.extents = {name: int(self.rng.integers(2, 6)) for name in names}
        self.values: dict[Key, Value] = {}
        self.first: dict[Key, Term] = {}
        self.computed: set[tuple[Key, Term]] = set()
        self._names = {key: name for name, key in tables.lets.items()}

    def ready(self) -> Iterator[tuple[Key, Term]]:
        """Nodes whose children have values, until none is left that is not computed."""
        found = True
        while found:
            before = len(self.computed)
            for key, terms in self.tables.terms.items():
                for term in terms:
                    if (key, term) not in self.computed and self._can(term):
                        yield key, term
            found = len(self.computed) > before

    def _can(self, term: Term) -> bool:
        return all(c in self.values for c in term.classes)

    def value(self, key: Key, term: Term) -> Value | None:
        """The value of a node; ``None`` of one that has none of its own."""
        tables = self.tables
        known = tables.shape(key[1])
        shape = _extents((3,) if known is None else known, self.extents)
        dtype = tables.dtype(key[1]) or "float32"
        match term.op:
            case view.LEAF if key in self.values:
                return None
            case view.LEAF if key[1] in tables.scalars:
                return np.full(shape, tables.scalars[key[1]], dtype)
            case view.LEAF:
                drawn = self.rng.standard_normal(shape)
                if key[1] in tables.narrow:  # what is stored so loses nothing
                    return stored(drawn.astype(dtype), *tables.narrow[key[1]])
                return drawn > 0 if dtype == "bool" else drawn.astype(dtype)
            case view.SCALAR:
                return np.asarray(term.scalar, dtype)
            case view.LOAD | view.STORE:
                return self.values[term.classes[0]]
            case view.OPAQUE | view.WHOLE:
                return None
            case view.TUPLE_GET:
                return self.values[term.classes[0]][cast(int, dict(term.attrs)["index"])]
            case name:
                operands = [_operand(c, self.values, self.extents) for c in term.children]
                while operands and operands[-1] is None:  # left out
                    operands.pop()
                try:
                    return apply_op(operators()[name].op, operands, dict(term.attrs))
                except Exception as problem:  # the reference is numpy, which raises what it likes
                    shown = self._written(term)
                    raise Unsound(f"{shown} has no value: {problem}") from problem

    def difference(self, key: Key, term: Term, value: Value) -> str:
        """The two nodes of a class, and what they are on the inputs of this run."""
        known = self.values[key]
        nodes = self._written(self.first[key]), self._written(term)
        shown = _apart(known, value)
        width = max(map(len, nodes))
        lines = [f"{node:<{width}}  is {text}" for node, text in zip(nodes, shown, strict=True)]
        sizes = ", ".join(f"{name} = {size}" for name, size in self.extents.items())
        return "\n".join(
            ("one class has two values:", *lines, *((f"at {sizes}",) if sizes else ()))
        )

    def _written(self, term: Term, depth: int = 0) -> str:
        """A node as rules write it, its operands by the names that the case gives them."""

        def child(c: TermChild) -> str:
            match c:
                case Key():
                    known = self._names.get(c) or (depth < _DEEPEST and self.first.get(c))
                    return (
                        self._written(known, depth + 1) if isinstance(known, Term) else known or "…"
                    )
                case tuple():
                    return f"(vec-of {' '.join(map(child, c))})"
                case ShapeStructInfo():
                    return shape_text(c.values or ())
                case _:
                    return str(c)

        match term.op:
            case view.LEAF:
                return f"(Leaf {term.key})"
            case view.SCALAR:
                return f"(R.const {term.scalar})"
            case op:
                head = f"R.{op}" if op in operators() else op
                inside = [*map(child, term.children), *(str(v) for _, v in term.attrs)]
                return f"({' '.join((head, *inside))})"


def _operand(child: TermChild, values: Mapping[Key, Value], extents: Mapping[str, int]) -> Any:
    match child:
        case Key():
            return values[child]
        case tuple():
            return tuple(values[c] for c in child)
        case ShapeStructInfo():
            return _extents(child.values or (), extents)
        case PrimValue(value=value):
            return value if isinstance(value, float) else dims.evaluate(value, extents)
        case None:
            return None


def _extents(shape: Shape, extents: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(dims.evaluate(d, extents) for d in shape)


def _same(a: Value, b: Value) -> bool:
    if isinstance(a, tuple) or isinstance(b, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    same_form = a.shape == b.shape and a.dtype == b.dtype
    return same_form and np.allclose(a, b, **TOLERANCE, equal_nan=True)


def _apart(a: Value, b: Value) -> tuple[str, str]:
    """What two values are that differ: their forms, or the elements at the first place."""
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
