"""Simplification of index arithmetic for loop variables in known ranges.

A comparison, ``min``, ``max``, ``//`` or ``%`` of positions is constant in a range of a variable,
up to a border; loops that are split there need not compute it.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.schedule.index import coefficients
from relax_egraph.tir.affine import dim_of
from relax_egraph.tir.expr import (
    COMPARISONS,
    Binary,
    Imm,
    Not,
    Select,
    TirExpr,
    TirVar,
    binary,
    from_dim,
)
from relax_egraph.tir.rewrite import nodes, rewrite, substitute, variables

Extents = Mapping[TirVar, Dim]
"""Variables, each from 0 to below its extent."""


_DECIDED = COMPARISONS | {"min", "max"}

_MOST_TURNS = 3
"""The maximal quotients along a range that are decided one by one."""

_TURNS = (-1, 0, 1)
"""The multiples of a divisor that may be subtracted from a position."""


def borders(exprs: Sequence[TirExpr], var: TirVar, extent: Dim) -> list[Dim]:
    """The values of `var` at which an expression in `exprs` changes its outcome, in order.

    Each is inside the range; those that cannot be ordered are omitted.
    """
    ordered: list[Dim] = []
    choices = {b: None for e in exprs for n in nodes(e) for b in _borders(n, var, extent)}
    for alternatives in sorted(choices, key=len):
        if any(border in ordered for border in alternatives):
            continue
        border = alternatives[0]
        inside = dims.prove_ge(border, 1) and dims.prove_ge(dims.sub(extent, 1), border)
        below = [b for b in ordered if dims.prove_ge(border, b)]
        if inside and all(b in below or dims.prove_ge(b, border) for b in ordered):
            ordered.insert(len(below), border)
    return ordered


def _borders(e: TirExpr, var: TirVar, extent: Dim) -> Iterator[tuple[Dim, ...]]:
    """Alternative borders for each decision of `e`: one of each is needed."""
    if not isinstance(e, Binary) or e.a.dtype != "int64":
        return
    if e.kind in ("//", "%"):
        size, line = dim_of(e.b), _line(e.a, var)
        has_many = isinstance(size, int) and isinstance(extent, int) and extent > _MOST_TURNS * size
        if size is not None and line is not None and line[0] == 1 and not has_many:
            yield from ((dims.sub(dims.mul(turns, size), line[1]),) for turns in (0, 1))
        return
    if e.kind not in _DECIDED or (line := _line(binary("-", e.a, e.b), var)) is None:
        return
    step, start = line
    if not isinstance(step, int) or step == 0:
        return
    back = dims.sub(0, start)
    if step > 0:  # where a - b is no longer below 0, and where it is above
        zero, above = dims.sub(0, dims.floordiv(start, step)), dims.floordiv(back, step)
        above = dims.add(above, 1)
    else:
        zero, above = dims.floordiv(start, -step), dims.sub(0, dims.floordiv(back, -step))
        zero = dims.add(zero, 1)
    match e.kind:
        case "<" | ">=":
            yield (zero,)
        case "<=" | ">":
            yield (above,)
        case "==" | "!=":
            yield from ((zero,), (above,))
        case _:
            yield (zero, above)


def _line(e: TirExpr, var: TirVar) -> tuple[Dim, Dim] | None:
    """``(a, b)`` with ``e = a·var + b``."""
    if set(variables(e)) != {var}:
        return None
    slope = coefficients(e, (var,))
    start = dim_of(substitute(e, {var: Imm(0, "int64")}))
    return None if slope is None or start is None else (slope[0], start)


def decide(expr: TirExpr, extents: Extents) -> TirExpr:
    """`expr` simplified by all outcomes that are constant in the ranges `extents`."""
    facts = _Facts(extents)

    def change(e: TirExpr) -> TirExpr:
        match e:
            case Binary() if e.a.dtype == "int64":
                return facts.position(e)
            case Binary(kind="and" | "or"):
                return _logical(e)
            case Not(a=Imm(value=value)):
                return Imm(1 - value, "bool")
            case Select(condition=Imm(value=value)):
                return e.a if value else e.b
            case _:
                return e

    return rewrite(expr, change)


def _logical(e: Binary) -> TirExpr:
    decides = 0 if e.kind == "and" else 1
    for one, other in ((e.a, e.b), (e.b, e.a)):
        if isinstance(one, Imm):
            return one if one.value == decides else other
    return e


@lru_cache(1 << 12)
def _is_natural(dim: Dim, positive: frozenset[str]) -> bool:
    """Whether `dim` is proven nonnegative if the symbols in `positive` are at least 1."""
    more = {name: dims.add(dims.symbol(name), 1) for name in positive & dims.symbols(dim)}
    return dims.prove_ge(dims.substitute(dim, more), 0)


class _Facts:
    """Facts about variables in ranges that are not empty."""

    def __init__(self, extents: Extents) -> None:
        self._extents = extents
        self._positive = frozenset(
            name
            for extent in extents.values()
            for name in dims.symbols(extent)
            if extent == dims.symbol(name)
        )

    def _at_least(self, a: Dim, b: Dim) -> bool:
        more = dims.sub(a, b)
        return more >= 0 if isinstance(more, int) else _is_natural(more, self._positive)

    def position(self, e: Binary) -> TirExpr:
        """`e`, an operation on positions, or a simpler equal one."""
        match e.kind:
            case "min" | "max":
                return self._extreme(e)
            case "//" | "%":
                return self._divide(e)
            case "+" | "-":
                return _collect(e)
            case kind if kind in COMPARISONS:
                outcome = self._compare(e)
                return e if outcome is None else Imm(int(outcome), "bool")
            case _:
                return e

    def _extreme(self, e: Binary) -> TirExpr:
        if (bounds := self._range(binary("-", e.a, e.b))) is None:
            return e
        least, most = bounds
        if self._at_least(0, most):
            return e.a if e.kind == "min" else e.b
        if self._at_least(least, 0):
            return e.b if e.kind == "min" else e.a
        return e

    def _compare(self, e: Binary) -> bool | None:
        a, b = (e.b, e.a) if e.kind in (">", "<=") else (e.a, e.b)
        if (bounds := self._range(binary("-", a, b))) is None:
            return None
        least, most = bounds
        is_below, is_not = self._at_least(-1, most), self._at_least(least, 0)
        match e.kind:
            case "<" | ">":
                return is_below if is_below or is_not else None
            case "<=" | ">=":
                return is_not if is_below or is_not else None
            case _ if least == most == 0:
                return e.kind == "=="
            case _:
                return e.kind == "!=" if is_below or self._at_least(least, 1) else None

    def _divide(self, e: Binary) -> TirExpr:
        size, bounds = dim_of(e.b), self._range(e.a)
        if size is None or bounds is None:
            return e
        least, most = bounds
        for turns in _TURNS:
            start = dims.mul(turns, size)
            if self._at_least(least, start) and self._at_least(
                dims.add(start, size), dims.add(most, 1)
            ):
                return Imm(turns, "int64") if e.kind == "//" else _collect(e.a - from_dim(start))
        return e

    def _range(self, e: TirExpr) -> tuple[Dim, Dim] | None:
        """The minimum and maximum of `e`, if it is linear in variables of known extents."""
        moving = tuple(variables(e))
        if any(v not in self._extents for v in moving):
            return None
        slopes = coefficients(e, moving)
        least = dim_of(substitute(e, dict.fromkeys(moving, Imm(0, "int64"))))
        if slopes is None or least is None:
            return None
        most = least
        for slope, var in zip(slopes, moving, strict=True):
            if not isinstance(slope, int):
                return None
            reach = dims.mul(slope, dims.sub(self._extents[var], 1))
            if slope < 0:
                least = dims.add(least, reach)
            else:
                most = dims.add(most, reach)
        return least, most


def _collect(e: TirExpr) -> TirExpr:
    """A sum with its constants combined."""
    rest, constant = _parts(e)
    if rest is None:
        return from_dim(constant)
    if isinstance(constant, int) and constant < 0:
        return rest - -constant
    return rest + from_dim(constant)


def _parts(e: TirExpr) -> tuple[TirExpr | None, Dim]:
    """`e` as a sum of an expression, or ``None``, and a dimension."""
    dim = dim_of(e)
    if dim is not None:
        return None, dim
    match e:
        case Binary(kind="+" | "-" as kind, a=a, b=b):
            left, left_dim = _parts(a)
            right, right_dim = _parts(b)
            total = dims.add(left_dim, right_dim) if kind == "+" else dims.sub(left_dim, right_dim)
            if right is None:
                return left, total
            if left is None:
                return (right if kind == "+" else Binary("-", Imm(0, "int64"), right)), total
            return Binary(kind, left, right), total
        case _:
            return e, 0
