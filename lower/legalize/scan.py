"""Scans along an axis: a running value for each row, in order, as numpy adds up.

Floating-point values run in float64 and are rounded where they are stored.
"""

from collections.abc import Mapping, Sequence

from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.struct_info import Shape
from relax_egraph.lower.legalize.elementwise import Legalize
from relax_egraph.tir import te
from relax_egraph.tir.analysis import symbols_of_buffers, symbols_of_stmt, unbound_symbols
from relax_egraph.tir.expr import BinaryKind, Buffer, Operand, TirVar, binary, from_dim
from relax_egraph.tir.stmt import For, PrimFunc, Stmt, Store, TirBlock, seq

ZERO = te.const(0, "int64")


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
    total = Buffer(free("total", taken), (1,), wide(dtype), "local")
    loops = [TirVar(free(f"i{k}", taken)) for k in range(len(shape))]
    at: tuple[Operand, ...] = tuple(loops)
    if axis is None:
        # Behind zeros an index runs over all elements as if they were in one row.
        at = (*(0 for _ in data.shape[1:]), loops[0])[: len(data.shape)]
    term = te.cast(te.cast(source[at], dtype), total.dtype)
    update = Store(total, (ZERO,), binary(combine, total[0], term))
    store = Store(out, tuple(loops), te.cast(total[0], dtype))
    step = seq(store, update) if exclusive else seq(update, store)
    start = Store(total, (ZERO,), te.const(identity, total.dtype))
    running = For(loops[place], from_dim(shape[place]), "serial", step)
    row = TirBlock(name, (), seq(start, running), allocs=(total,))
    rest = [(v, d) for k, (v, d) in enumerate(zip(loops, shape, strict=True)) if k != place]
    return loop_function((source, out), around(rest, row))


def taken_by(*buffers: Buffer) -> set[str]:
    """The names of `buffers` and of the symbols in their shapes."""
    return {*(b.name for b in buffers), *symbols_of_buffers(buffers)}


def free(name: str, taken: set[str]) -> str:
    """`name`, or what is free of `taken` and begins so."""
    while name in taken:
        name += "_"
    return name


def wide(dtype: str) -> str:
    """The dtype in which values of `dtype` run."""
    return "float64" if is_float(dtype) else dtype


def around(loops: Sequence[tuple[TirVar, dims.Dim]], body: Stmt) -> Stmt:
    """`body` in loops, the first outermost."""
    for var, extent in reversed(loops):
        body = For(var, from_dim(extent), "serial", body)
    return body


def loop_function(params: tuple[Buffer, ...], body: Stmt) -> PrimFunc:
    """The function of `params`, the last of which `body` writes."""
    return PrimFunc(params, body, 1, unbound_symbols(params, symbols_of_stmt(body)))


LEGALIZE: Mapping[str, Legalize] = {"cumsum": cumsum, "cumprod": cumprod}
