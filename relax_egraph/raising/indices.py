"""Indices of loads: constants, multiples of one axis, lookups, and digits of a place."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.polynomial import Polynomial, atom
from relax_egraph.raising.nests import Loops
from relax_egraph.tir.affine import affine, dim_of, split
from relax_egraph.tir.expr import Binary, TirExpr, TirVar, from_dim
from relax_egraph.tir.rewrite import loads, nodes, rewrite, variables
from relax_egraph.tir.simplify import simplify_index


@dataclass(frozen=True, slots=True)
class Point:
    """The index `at`, for all points."""

    at: Dim


@dataclass(frozen=True, slots=True)
class Along:
    """The index ``step · axis + offset``."""

    axis: TirVar
    step: int
    offset: Dim


@dataclass(frozen=True, slots=True)
class Looked:
    """An index that is read from tensors."""

    index: TirExpr


@dataclass(frozen=True, slots=True)
class Mixed:
    """Any other index."""

    index: TirExpr


Index: TypeAlias = Point | Along | Looked | Mixed


def index_of(expr: TirExpr, extents: Loops) -> Index:
    """The kind of an index, over axes that run to `extents`."""
    if loads(expr):
        return Looked(expr)
    expr = simplify_index(unclamped(expr, extents), extents)
    terms = linear(expr, extents)
    if terms is None:
        at = dim_of(expr)
        return Mixed(expr) if at is None else Point(at)
    steps, offset = terms
    match list(steps.items()):
        case []:
            return Point(offset)
        case [(axis, int(step))]:
            return Along(axis, step, offset)
        case _:
            return Mixed(expr)


def unclamped(expr: TirExpr, extents: Loops) -> TirExpr:
    """`expr` without minima and maxima of which one side is proven to be the result."""

    def change(e: TirExpr) -> TirExpr:
        if not isinstance(e, Binary) or e.kind not in ("min", "max"):
            return e
        low, high = (e.a, e.b) if e.kind == "min" else (e.b, e.a)
        if is_at_most(low, high, extents):
            return e.a
        return e.b if is_at_most(high, low, extents) else e

    return rewrite(expr, change)


def is_at_most(a: TirExpr, b: TirExpr, extents: Loops) -> bool:
    """Whether ``a <= b`` is proven at all points."""
    terms = linear(b - a, extents)
    if terms is None:
        return False
    steps, least = terms
    for axis, step in steps.items():
        if not dims.prove_ge(step, 0):
            if not dims.prove_ge(0, step):
                return False
            least = dims.add(least, dims.mul(step, dims.sub(extents[axis], 1)))
    return dims.prove_ge(least, 0)


def linear(expr: TirExpr, extents: Loops) -> tuple[dict[TirVar, Dim], Dim] | None:
    """The coefficients of the axes in `expr`, none 0, and what is left; ``None`` if not linear."""
    names = {axis: f"%{k}" for k, axis in enumerate(extents)}
    value = affine(expr, {axis: atom(name) for axis, name in names.items()})
    if value is None:
        return None
    steps: dict[TirVar, Dim] = {}
    for axis, name in names.items():
        parts = split(value, name)
        if parts is None or any(part.startswith("%") for part in _atoms(parts[0])):
            return None
        step, value = parts
        if step.terms:
            steps[axis] = step.dim()
    return steps, value.dim()


def _atoms(value: Polynomial) -> list[str]:
    return [name for monomial, _ in value.terms for name in monomial]


@dataclass(frozen=True, slots=True)
class Digits:
    """A place in row-major order: `offset` plus the number whose digits are the values of `axes`.

    It runs over `count` places.
    """

    axes: tuple[TirVar, ...]
    offset: Dim
    count: Dim


def digits(indices: Sequence[TirExpr], shape: Sequence[Dim], extents: Loops) -> Digits | None:
    """The place of the element `indices` of `shape`, as digits; ``None`` if there are none."""
    flat: TirExpr | None = None
    for index, extent in zip(indices, shape, strict=True):
        flat = index if flat is None else flat * from_dim(extent) + index
    assert flat is not None
    terms = linear(simplify_index(unclamped(flat, extents), extents), extents)
    if terms is None:
        return None
    steps = dict(terms[0])
    order: list[TirVar] = []
    place: Dim = 1
    while steps:
        least = [axis for axis, step in steps.items() if dims.equal(step, place)]
        if len(least) != 1:
            return None
        order.insert(0, least[0])
        place = dims.mul(place, extents[least[0]])
        del steps[least[0]]
    return Digits(tuple(order), terms[1], place)


def divided(indices: Sequence[TirExpr], extents: Loops) -> tuple[TirVar, Dim] | None:
    """An axis of which `indices` have the quotient or the rest by a divisor of its extent."""
    for index in indices:
        for node in nodes(index):
            match node:
                case Binary(kind="//" | "%", a=TirVar() as axis, b=b) if axis in extents:
                    by = dim_of(b)
                    if by is not None and by not in (0, 1) and dims.divides(by, extents[axis]):
                        return axis, by
                case _:
                    pass
    return None


def axes_in(expr: TirExpr, axes: Sequence[TirVar]) -> tuple[TirVar, ...]:
    """The axes of `axes`, in order, that `expr` depends on."""
    used = variables(expr)
    return tuple(a for a in axes if a in used)
