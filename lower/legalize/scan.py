"""Scans along an axis: a running value for each row, in order, as in numpy.

Floats accumulate in float64 and are rounded when stored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.struct_info import Shape
from relax_egraph.lower.legalize.elementwise import Legalize
from relax_egraph.lower.legalize.loops import ZERO, around, free, loop_function, names_of
from relax_egraph.tir import te
from relax_egraph.tir.expr import (
    BinaryKind,
    Buffer,
    Operand,
    TirExpr,
    TirVar,
    binary,
    from_dim,
)
from relax_egraph.tir.rewrite import substitute, substitute_stmt
from relax_egraph.tir.stmt import For, PrimFunc, Stmt, Store, TirBlock, seq

STRIP = 256
"""The columns that run together, enough to amortise a visit of the row."""


def cumsum(data: te.Tensor, *, axis: int | None, dtype: str | None, exclusive: bool) -> PrimFunc:
    """Running sums; for booleans, running disjunctions."""
    result = dtype or data.dtype
    combine: BinaryKind = "max" if result == "bool" else "+"
    return _scanned("cumsum", combine, 0, data, axis, result, exclusive)


def cumprod(data: te.Tensor, *, axis: int | None, dtype: str | None, exclusive: bool) -> PrimFunc:
    """Running products; for booleans, running conjunctions."""
    result = dtype or data.dtype
    combine: BinaryKind = "min" if result == "bool" else "*"
    return _scanned("cumprod", combine, 1, data, axis, result, exclusive)


def _scanned(
    name: str,
    combine: BinaryKind,
    identity: int,
    data: te.Tensor,
    axis: int | None,
    dtype: str,
    exclusive: bool,
) -> PrimFunc:
    shape: Shape = (dims.product(data.shape),) if axis is None else data.shape
    place = 0 if axis is None else axis % len(shape)
    source, out = Buffer(data.name, data.shape, data.dtype), Buffer(name, shape, dtype)
    used = names_of(source, out)
    loops = [TirVar(free(f"i{k}", used)) for k in range(len(shape))]
    at: tuple[Operand, ...] = tuple(loops)
    if axis is None:
        # Indices of 0 before it let the last index run over all elements in row-major order.
        at = (*(0 for _ in data.shape[1:]), loops[0])[: len(data.shape)]
    side = _side(place, loops, shape, used)
    total = Buffer(free("total", used), (side.width,), wide(dtype), "local")
    moved = {loops[-1]: side.column}
    term = te.cast(te.cast(substitute(source[at], moved), dtype), total.dtype)
    indices = tuple(substitute(v, moved) for v in loops)
    update = Store(total, (side.place,), binary(combine, total[side.place], term))
    store = Store(out, indices, te.cast(total[side.place], dtype))
    step = side.along(seq(store, update) if exclusive else seq(update, store))
    start = side.along(Store(total, (side.place,), te.const(identity, total.dtype)))
    running = For(loops[place], from_dim(shape[place]), "serial", step)
    row = TirBlock(name, (), seq(start, running), allocs=(total,))
    kept = zip(loops[: -1 if side.strips else None], shape, strict=False)
    rest = [(v, d) for k, (v, d) in enumerate(kept) if k != place]
    return loop_function((source, out), around([*rest, *side.strips], row, "parallel"))


@dataclass(frozen=True, slots=True)
class _Side:
    """Totals that run side by side: at most `width`, for the columns of a strip, or a single one.

    The total of ``column`` is at `place`, which for several totals is a variable up to `count`.
    """

    width: int
    column: TirExpr
    place: TirExpr
    count: TirExpr
    strips: tuple[tuple[TirVar, dims.Dim], ...] = ()

    def along(self, body: Stmt) -> Stmt:
        """A loop of `body` over the totals."""
        if not isinstance(self.place, TirVar):
            return body
        own = TirVar(self.place.name)
        return For(own, self.count, "vectorized", substitute_stmt(body, {self.place: own}))


def _side(place: int, loops: Sequence[TirVar], shape: Shape, used: set[str]) -> _Side:
    """The totals of a scan: one along the last axis, else one for each column of a strip."""
    if place == len(shape) - 1:
        return _Side(1, loops[-1], ZERO, te.const(1, "int64"))
    strip, own = TirVar(free("c", used)), TirVar(free("j", used))
    start = strip * STRIP
    count = binary("min", STRIP, from_dim(shape[-1]) - start)
    strips = dims.floordiv(dims.add(shape[-1], STRIP - 1), STRIP)
    return _Side(STRIP, start + own, own, count, ((strip, strips),))


def wide(dtype: str) -> str:
    """The dtype in which values of `dtype` accumulate."""
    return "float64" if is_float(dtype) else dtype


LEGALIZE: Mapping[str, Legalize] = {"cumsum": cumsum, "cumprod": cumprod}
