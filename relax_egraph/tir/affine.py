"""Indices as polynomials over loops and dimensions, and loops as ranges of numbers."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.polynomial import Polynomial, number, polynomial
from relax_egraph.tir.expr import Binary, DimSymbol, Imm, TirExpr, TirVar

Environment = Mapping[TirVar, Polynomial | None]
"""The values of variables over loops and dimensions; ``None`` for unknown ones."""


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop variable, as an atom, that runs from 0; each of `bounds` bounds its iterations.

    A bound may be over variables of other loops.
    """

    atom: str
    bounds: tuple[Polynomial, ...]


@dataclass(frozen=True, slots=True)
class Term:
    """The contribution of a loop to an offset: ``step`` for each of at most `bounds` iterations."""

    loop: str
    step: Polynomial
    bounds: tuple[Polynomial, ...]


def affine(expr: TirExpr, known: Environment) -> Polynomial | None:
    """`expr` as a polynomial over known values; ``None`` if it is none."""
    match expr:
        case TirVar():
            return known.get(expr)
        case Imm(value=int(value)):
            return number(value)
        case Binary(kind="+" | "-" | "*" as kind, a=a, b=b):
            left, right = affine(a, known), affine(b, known)
            if left is None or right is None:
                return None
            return {"+": left + right, "-": left - right, "*": left * right}[kind]
        case _:
            dim = dim_of(expr)
            return None if dim is None else polynomial(dim)


def bounds_of(extent: TirExpr, known: Environment) -> tuple[Polynomial, ...]:
    """Upper bounds of `extent`: each operand of a minimum."""
    match extent:
        case Binary(kind="min", a=a, b=b):
            return (*bounds_of(a, known), *bounds_of(b, known))
        case Binary(kind="-", a=a, b=b) if (less := affine(b, known)) is not None:
            return tuple(bound - less for bound in bounds_of(a, known))
        case _:
            value = affine(extent, known)
            return () if value is None else (value,)


def split(value: Polynomial, loop: str) -> tuple[Polynomial, Polynomial] | None:
    """`value` as ``step · loop + rest``; ``None`` if it is not linear in `loop`."""
    step, rest = Polynomial(), Polynomial()
    for monomial, coefficient in value.terms:
        count = monomial.count(loop)
        if count > 1:
            return None
        others = tuple(a for a in monomial if a != loop)
        part = Polynomial(((others, coefficient),))
        step, rest = (step + part, rest) if count else (step, rest + part)
    return step, rest


def whole_loops(terms: Sequence[Term]) -> list[Term]:
    """`terms`, with the two loops of a tiled loop merged into one.

    The iterations ``i < min(T, n - T·o)`` of tiles ``o`` are those of one loop of ``n`` iterations.
    """
    left = list(terms)
    for inner in reversed(terms):
        for outer in terms:
            merged = _merged(outer, inner) if outer in left and inner in left else None
            if merged is not None:
                left[left.index(outer)] = merged
                left.remove(inner)
                return whole_loops(left)
    return left


def _merged(outer: Term, inner: Term) -> Term | None:
    for size in (b.constant for b in inner.bounds):
        if outer is inner or size is None or outer.step != inner.step.times(size):
            continue
        bounds: list[Polynomial] = []
        for bound in inner.bounds:
            parts = split(bound, outer.loop)
            if parts is not None and parts[0].constant == -size:
                bounds.append(parts[1])
        return Term(outer.loop, inner.step, tuple(bounds)) if bounds else None
    return None


def mentions(value: Polynomial, loops: Set[str]) -> bool:
    """Whether `value` depends on any of `loops`."""
    return any(a in loops for monomial, _ in value.terms for a in monomial)


def dim_of(expr: TirExpr) -> Dim | None:
    """`expr` as a dimension; ``None`` if it has more than literals and symbols."""
    match expr:
        case DimSymbol(name=name):
            return dims.symbol(name)
        case Imm(value=int(value), dtype="int64"):
            return value
        case Binary(kind=kind, a=a, b=b) if kind in dims.ALGEBRA.operators:
            left, right = dim_of(a), dim_of(b)
            if left is None or right is None or (kind in ("//", "%") and right == 0):
                return None
            return dims.ALGEBRA.operators[kind](left, right)
        case _:
            return None
