"""Whether what an e-graph holds equal is equal: every node computed on random inputs.

Each class takes its value from the first of its nodes that can be computed, and every other node
of the class must give the same.
"""

from typing import Any, cast

import numpy as np
import numpy.typing as npt
from egglog.bindings import EGraph

from relax_egraph.egraph import view
from relax_egraph.egraph.narrowing import stored
from relax_egraph.egraph.tables import Key, Tables, Term, TermChild
from relax_egraph.egraph.vocabulary import operators
from relax_egraph.ir import dims
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.expr import PrimValue
from relax_egraph.ir.struct_info import Shape, ShapeStructInfo

Array = npt.NDArray[np.generic]
Value = Array | tuple[Array, ...]

TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}


class Unsound(AssertionError):
    """Two nodes of one class have different values."""


def check_sound(egraph: EGraph, seed: int) -> int:
    """Compare all nodes of all classes; return how many were found equal to another one."""
    tables = Tables(egraph)
    rng = np.random.default_rng(seed)
    shapes = (tables.shape(key[1]) or () for key in tables.terms)
    names = sorted({s for shape in shapes for d in shape for s in dims.symbols(d)})
    extents = {name: int(rng.integers(2, 6)) for name in names}
    values: dict[Key, Value] = {}
    compared: set[tuple[Key, Term]] = set()
    found = True
    while found:
        found = False
        for key, terms in tables.terms.items():
            for term in terms:
                if (key, term) in compared or any(c not in values for c in term.classes):
                    continue
                value = _value(key, term, values, tables, extents, rng)
                if value is None:
                    continue
                compared.add((key, term))
                found = True
                if key not in values:
                    values[key] = value
                elif not _same(values[key], value):
                    raise Unsound(f"{_shown(term)} differs from {_shown(terms[0])}")
    return len(compared) - len(values)


def _value(
    key: Key,
    term: Term,
    values: dict[Key, Value],
    tables: Tables,
    extents: dict[str, int],
    rng: np.random.Generator,
) -> Value | None:
    known = tables.shape(key[1])
    shape = _extents((3,) if known is None else known, extents)
    dtype = tables.dtype(key[1]) or "float32"
    match term.op:
        case view.LEAF if key in values:
            return None
        case view.LEAF if key[1] in tables.scalars:
            return np.full(shape, tables.scalars[key[1]], dtype)
        case view.LEAF:
            drawn = rng.standard_normal(shape)
            if key[1] in tables.narrow:  # what is stored so loses nothing
                return stored(drawn.astype(dtype), *tables.narrow[key[1]])
            return drawn > 0 if dtype == "bool" else drawn.astype(dtype)
        case view.SCALAR:
            return np.asarray(term.scalar, dtype)
        case view.LOAD | view.STORE:
            return values[term.classes[0]]
        case view.OPAQUE:
            return None
        case view.TUPLE_GET:
            return values[term.classes[0]][cast(int, dict(term.attrs)["index"])]
        case name:
            operands = [_operand(c, values, extents) for c in term.children]
            while operands and operands[-1] is None:  # left out
                operands.pop()
            return apply_op(operators()[name].op, operands, dict(term.attrs))


def _operand(child: TermChild, values: dict[Key, Value], extents: dict[str, int]) -> Any:
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


def _extents(shape: Shape, extents: dict[str, int]) -> tuple[int, ...]:
    return tuple(dims.evaluate(d, extents) for d in shape)


def _same(a: Value, b: Value) -> bool:
    if isinstance(a, tuple) or isinstance(b, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    same_form = a.shape == b.shape and a.dtype == b.dtype
    return same_form and np.allclose(a, b, **TOLERANCE, equal_nan=True)


def _shown(term: Term) -> str:
    inside = ", ".join(str(a) for _, a in term.attrs)
    return f"{term.op}({inside})"
