"""Loop functions that copy each operand to a place of its own in the result."""

from collections.abc import Callable, Sequence

from relax_egraph.ir.struct_info import Shape
from relax_egraph.tir import te
from relax_egraph.tir.analysis import symbols_of_buffers, symbols_of_stmt, unbound_symbols
from relax_egraph.tir.expr import Buffer, Operand, TirVar, as_expr, from_dim
from relax_egraph.tir.stmt import BlockAxis, For, PrimFunc, Stmt, Store, TirBlock, seq

Place = Callable[[tuple[TirVar, ...]], Sequence[Operand]]
"""From the indices of an element of an operand to its indices in the result."""


def copied(
    name: str, shape: Shape, tensors: Sequence[te.Tensor], places: Sequence[Place]
) -> PrimFunc:
    """The function that fills `name`, of `shape`, with `tensors`, each element at its place.

    Each tensor has one nest of loops that reads it in order: the work is that of the copies,
    however many tensors there are, and an empty one is not read.
    """
    out = Buffer(name, shape, tensors[0].dtype)
    inputs = [Buffer(t.name, t.shape, t.dtype) for t in tensors]
    taken = {out.name, *(b.name for b in inputs), *symbols_of_buffers((out, *inputs))}
    body = seq(*(_copy(b, out, place, taken) for b, place in zip(inputs, places, strict=True)))
    params = (*inputs, out)
    return PrimFunc(params, body, 1, unbound_symbols(params, symbols_of_stmt(body)))


def _copy(source: Buffer, out: Buffer, place: Place, taken: set[str]) -> Stmt:
    loops = [TirVar(_free(f"i{k}", taken)) for k in range(len(source.shape))]
    axes = tuple(
        BlockAxis(TirVar(_free(f"v_i{k}", taken)), from_dim(extent), "spatial", loop)
        for k, (loop, extent) in enumerate(zip(loops, source.shape, strict=True))
    )
    point = tuple(a.var for a in axes)
    to = tuple(as_expr(i) for i in place(point))
    nest: Stmt = TirBlock(f"{out.name}_{source.name}", axes, Store(out, to, source[point]))
    for loop, axis in reversed([*zip(loops, axes, strict=True)]):
        nest = For(loop, axis.extent, "serial", nest)
    return nest


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name
