"""Reads around a position that may leave a tensor: clamped indices and their conditions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.tir import te
from relax_egraph.tir.expr import Operand, TirExpr, as_expr, binary


@dataclass(frozen=True, slots=True)
class Place:
    """An index inside its axis, and the conditions that it is the requested one."""

    index: TirExpr
    conditions: tuple[TirExpr, ...] = ()


def clamped(index: Operand, extent: Dim) -> TirExpr:
    """`index` clamped into an axis of `extent`; 0 if the axis is empty."""
    return te.maximum(te.minimum(index, dims.sub(extent, 1)), 0)


def place(index: Operand, extent: Dim, *, below: bool = True, above: bool = True) -> Place:
    """`index` along an axis of `extent`, which may be `below` 0 or `above` the last element."""
    at, limit = as_expr(index), as_expr(extent)
    conditions = [at >= 0] if below else []
    if above:
        conditions.append(at < limit)
        at = te.minimum(at, limit - 1)
    return Place(te.maximum(at, 0) if conditions else at, tuple(conditions))


def element(x: te.Tensor, at: Sequence[Place], outside: Operand) -> TirExpr:
    """The element of `x` at `at`, a place for each axis; `outside` if a condition fails."""
    return where(at, x[tuple(p.index for p in at)], outside)


def where(at: Sequence[Place], value: TirExpr, outside: Operand) -> TirExpr:
    """`value` if the conditions of all places hold, else `outside`."""
    conditions = [c for p in at for c in p.conditions]
    return te.select(all_of(conditions), value, outside) if conditions else value


def all_of(conditions: Sequence[TirExpr]) -> TirExpr:
    """The conjunction of `conditions`, of at least one."""
    return reduce(lambda a, b: binary("and", a, b), conditions)


def any_read(extents: Iterable[Dim]) -> Dim:
    """1 if all axes of `extents` are nonempty, else 0.

    A clamped index needs a nonempty axis: a reduction whose extent has this factor reads nothing
    from an empty tensor.
    """
    return dims.product(1 if dims.prove_ge(e, 1) else dims.minimum(1, e) for e in extents)
