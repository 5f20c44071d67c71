"""Scans along an axis: a running value for each row, in order, as numpy adds up.

Floating-point values run in float64 and are rounded where they are stored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.struct_info import Shape
from relax_egraph.lower.legalize.elementwise import Legalize
from relax_egraph.lower.legalize.loops import ZERO, around, free, loop_function, taken_by
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
"""How many columns run together: of so many a row is worth the visit."""


def cumsum(data: te.Tensor, *, axis: int | None, dtype: str | None, exclusive: bool) -> PrimFunc:
    """Running sums; of booleans, whether any held so far."""
    result = dtype or data.dtype
    combine: BinaryKind = "max" if result == "bool" else "+"
    return _scanned("cumsum", combine, 0, data, axis, result, exclusive)


def cumprod(data: te.Tensor, *, axis: int | None, dtype: str | None, exclusive: bool) -> PrimFunc:
    """Running products; of booleans, whether all held so far."""
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
    taken = taken_by(source, out)
    loops = [TirVar(free(f"i{k}", taken)) for k in range(len(shape))]
    at: tuple[Operand, ...] = tuple(loops)
    if axis is None:
        # Behind zeros an index runs over all elements as if they were in one row.
        at = (*(0 for _ in data.shape[1:]), loops[0])[: len(data.shape)]
    side = _side(place, loops, shape, taken)
    total = Buffer(free("total", taken), (side.width,), wide(dtype), "local")
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
    """What runs side by side: `width` totals at most, for columns of a strip, or just one.

    The total of ``column`` is at `place`, a variable that runs up to `count` if there are several.
    """

    width: int
    column: TirExpr
    place: TirExpr
    count: TirExpr
    strips: tuple[tuple[TirVar, dims.Dim], ...] = ()

    def along(self, body: Stmt) -> Stmt:
        """`body` for each total."""
        if not isinstance(self.place, TirVar):
            return body
        own = TirVar(self.place.name)
        return For(own, self.count, "vectorized", substitute_stmt(body, {self.place: own}))


def _side(place: int, loops: Sequence[TirVar], shape: Shape, taken: set[str]) -> _Side:
    """Along the last axis one total runs in order; along another those of neighbours together."""
    if place == len(shape) - 1:
        return _Side(1, loops[-1], ZERO, te.const(1, "int64"))
    strip, own = TirVar(free("c", taken)), TirVar(free("j", taken))
    start = strip * STRIP
    count = binary("min", STRIP, from_dim(shape[-1]) - start)
    strips = dims.floordiv(dims.add(shape[-1], STRIP - 1), STRIP)
    return _Side(STRIP, start + own, own, count, ((strip, strips),))


def wide(dtype: str) -> str:
    """The dtype in which values of `dtype` run."""
    return "float64" if is_float(dtype) else dtype


LEGALIZE: Mapping[str, Legalize] = {"cumsum": cumsum, "cumprod": cumprod}
