"""Loop functions with a loop nest for each part of the result."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_egraph.ir.struct_info import Shape
from relax_egraph.lower.legalize.loops import around, free, loop_function, names_of
from relax_egraph.tir import te
from relax_egraph.tir.expr import Buffer, Operand, TirExpr, TirVar, as_expr, from_dim
from relax_egraph.tir.stmt import BlockAxis, PrimFunc, Stmt, Store, TirBlock, seq

Place = Callable[[tuple[TirVar, ...]], Sequence[Operand]]
"""Maps the index of an element of a part to its index in the result."""

Value = Callable[[Sequence[Buffer], tuple[TirVar, ...]], TirExpr]
"""Maps the operands and the index of an element of a part to the element."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the result, of `shape`."""

    name: str
    shape: Shape
    place: Place
    value: Value


def copied(
    name: str, shape: Shape, tensors: Sequence[te.Tensor], places: Sequence[Place]
) -> PrimFunc:
    """The function that fills `name`, of `shape`, with `tensors`, each element at its place.

    The time is that of the copies, for any number of tensors, and empty ones are not read.
    """

    def read(k: int) -> Value:
        return lambda operands, point: operands[k][point]

    parts = [
        Part(t.name, t.shape, place, read(k))
        for k, (t, place) in enumerate(zip(tensors, places, strict=True))
    ]
    return filled(name, shape, tensors, parts)


def filled(
    name: str, shape: Shape, tensors: Sequence[te.Tensor], parts: Sequence[Part]
) -> PrimFunc:
    """The function that fills `name`, of `shape`, with `parts` that are computed from `tensors`.

    Each part has one loop nest, in order.
    """
    out = Buffer(name, shape, tensors[0].dtype)
    inputs = [Buffer(t.name, t.shape, t.dtype) for t in tensors]
    used = names_of(out, *inputs)
    body = seq(*(_nest(part, inputs, out, used) for part in parts))
    return loop_function((*inputs, out), body)


def _nest(part: Part, inputs: Sequence[Buffer], out: Buffer, used: set[str]) -> Stmt:
    loops = [TirVar(free(f"i{k}", used)) for k in range(len(part.shape))]
    axes = tuple(
        BlockAxis(TirVar(free(f"v_i{k}", used)), from_dim(extent), "spatial", loop)
        for k, (loop, extent) in enumerate(zip(loops, part.shape, strict=True))
    )
    point = tuple(a.var for a in axes)
    to = tuple(as_expr(i) for i in part.place(point))
    store = Store(out, to, part.value(inputs, point))
    block = TirBlock(f"{out.name}_{part.name}", axes, store)
    return around([*zip(loops, part.shape, strict=True)], block)
