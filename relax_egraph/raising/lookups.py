"""Indices that are read from tensors: what an index outside reads, as `R.take` says it."""

from functools import lru_cache

from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import is_integer
from relax_egraph.lower.legalize.index import clamped, position
from relax_egraph.raising.scalars import Pattern
from relax_egraph.tir.expr import Cast, TirExpr, TirVar


def lookup_of(index: TirExpr, extent: Dim) -> tuple[TirExpr, str]:
    """The integers that `index` looks up in an axis of `extent`, and the mode of the lookup.

    A plain index is inside the axis, where all modes are the same.
    """
    for pattern in _patterns(extent):
        matched = pattern.match(index)
        if matched is not None:
            return _narrow(matched[0]), pattern.operator
    return _narrow(index), "fast"


@lru_cache(256)
def _patterns(extent: Dim) -> tuple[Pattern, ...]:
    hole = TirVar("index", "int64")
    modes = {"fast": position(hole, extent), "clip": clamped(hole, extent)}
    return tuple(Pattern(mode, expr, (hole,)) for mode, expr in modes.items())


def _narrow(index: TirExpr) -> TirExpr:
    """`index` without a conversion from other integers, which a lookup does itself."""
    if isinstance(index, Cast) and is_integer(index.value.dtype):
        return index.value
    return index
