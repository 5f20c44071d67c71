"""Scatters by index tensors, slices, and masks.

Indices from tensors are cast to ``int64``; negative ones count from the end of the axis, and all
are clamped into it, so that no data causes writes outside a buffer.  The source of an element is
not a function of its index, so the loops are not tensor expressions: a copy, then the updates in
order.
"""

from collections.abc import Callable, Mapping, Sequence

from relax_egraph.errors import NotLowerable
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.ops.scatter import sliced
from relax_egraph.ir.struct_info import Shape
from relax_egraph.lower.legalize.binary import add_scalars, multiply_scalars
from relax_egraph.lower.legalize.elementwise import (
    Legalize,
    broadcast,
    element,
    elementwise,
)
from relax_egraph.lower.legalize.index import (
    clamped,
    depth_of,
    leading,
    position,
    read,
    require_room,
    row,
)
from relax_egraph.lower.legalize.loops import loop_function
from relax_egraph.lower.legalize.proven import need_equal
from relax_egraph.tir import te
from relax_egraph.tir.expr import Buffer, TirExpr, TirVar, from_dim
from relax_egraph.tir.rewrite import substitute_stmt
from relax_egraph.tir.stmt import For, IfThenElse, LoopKind, PrimFunc, Stmt, Store, seq

Point = tuple[TirVar, ...]


def _mean(x: TirExpr, y: TirExpr) -> TirExpr:
    return (x + y) / 2


def _update(x: TirExpr, y: TirExpr) -> TirExpr:
    return y


_COMBINED: Mapping[str, Callable[[TirExpr, TirExpr], TirExpr]] = {
    "update": _update,
    "add": add_scalars,
    "mul": multiply_scalars,
    "mean": _mean,
    "max": te.maximum,
    "min": te.minimum,
}


def scatter_elements(
    data: te.Tensor, indices: te.Tensor, updates: te.Tensor, *, axis: int, reduction: str
) -> PrimFunc:
    """Each update replaces the element at its place, with the index along `axis` from `indices`."""
    place = axis % len(data.shape)
    require_room(data, indices, place)
    need_equal(updates.shape, indices.shape)

    def at(*i: TirVar) -> tuple[TirExpr, ...]:
        return (*i[:place], position(indices[i], data.shape[place]), *i[place + 1 :])

    return _updated(
        "scatter_elements", (data, indices, updates), at, updates.at, updates.shape, reduction
    )


def scatter_nd(
    data: te.Tensor, indices: te.Tensor, updates: te.Tensor, *, reduction: str
) -> PrimFunc:
    """Each part of `updates` replaces the part of the result at its row of `indices`."""
    need_equal(updates.shape, (*indices.shape[:-1], *data.shape[depth_of(indices) :]))
    where = len(indices.shape) - 1

    def at(*i: TirVar) -> tuple[TirExpr, ...]:
        return (*row(indices, i[:where], data.shape), *i[where:])

    return _updated(
        "scatter_nd", (data, indices, updates), at, updates.at, updates.shape, reduction, where
    )


def index_put(
    data: te.Tensor, indices: Sequence[te.Tensor], values: te.Tensor, *, accumulate: bool
) -> PrimFunc:
    """Each part of `values` replaces the part of the result at the broadcast `indices`."""
    where = broadcast(*(t.shape for t in indices))
    shape = (*where, *data.shape[len(indices) :])
    need_equal(broadcast(values.shape, shape), shape)

    def at(*i: TirVar) -> tuple[TirExpr, ...]:
        return (*leading(data, indices, where, i[: len(where)]), *i[len(where) :])

    def update(*i: TirVar) -> TirExpr:
        return element(values, shape, i)

    reduction, operands = "add" if accumulate else "update", (data, *indices, values)
    return _updated("index_put", operands, at, update, shape, reduction, len(where))


def _updated(
    name: str,
    operands: Sequence[te.Tensor],
    at: Callable[..., tuple[TirExpr, ...]],
    update: Callable[..., TirExpr],
    shape: Shape,
    reduction: str,
    where: int | None = None,
) -> PrimFunc:
    """A copy of the first of `operands`, then the `update` for each point of `shape`, in order.

    It is combined with the element `at` the point.  Axes of `shape` from `where` on are axes of the
    result, too, so that their points write distinct elements.
    """
    data = operands[0]
    out = Buffer(name, data.shape, data.dtype)

    def copy(*i: TirVar) -> Stmt:
        return Store(out, i, data[i])

    def combine(*i: TirVar) -> Stmt:
        place = at(*i)
        return Store(out, place, _COMBINED[reduction](out[place], update(*i)))

    body = _loops(data.shape, copy, "vectorized")
    if 0 not in data.shape:
        is_distinct = where is not None and where < len(shape)
        updates = _loops(shape, combine, "vectorized" if is_distinct else "serial")
        body = seq(body, _unless_empty(data.shape, updates))
    plain: dict[Buffer, Buffer] = {t: Buffer(t.name, t.shape, t.dtype) for t in operands}
    body = substitute_stmt(body, buffers=plain)
    return loop_function((*plain.values(), out), body)


def _loops(shape: Shape, body: Callable[..., Stmt], kind: LoopKind) -> Stmt:
    """A loop nest of `body` over `shape`, whose innermost loop is of `kind`."""
    axes = [TirVar(f"i{k}") for k in range(len(shape))]
    nest = body(*axes)
    for axis, extent in reversed([*zip(axes, shape, strict=True)]):
        nest = For(axis, from_dim(extent), kind, nest)
        kind = "serial"
    return nest


def _unless_empty(shape: Shape, body: Stmt) -> Stmt:
    """`body`, if there is an element to write."""
    for extent in shape:
        if not dims.prove_ge(extent, 1):
            body = IfThenElse(from_dim(extent) > 0, body)
    return body


def slice_scatter(
    input: te.Tensor, src: te.Tensor, start: Dim, end: Dim, step: Dim, *, axis: int
) -> te.Tensor:
    """The source inside the slice, the input elsewhere."""
    place = axis % len(input.shape)
    slice_ = sliced(input.shape[place], start, end, step)
    if slice_ is None or not isinstance(step, int) or step < 1:
        raise NotLowerable("where the slice is, is known only at run time")
    first, count = slice_
    need_equal(src.shape, (*input.shape[:place], count, *input.shape[place + 1 :]))

    def value(*i: TirVar) -> TirExpr:
        ahead = i[place] - from_dim(first)
        number = ahead // step
        inside = te.logical_and(ahead >= 0, number < from_dim(count))
        if step > 1:
            inside = te.logical_and(inside, te.equal(ahead % step, 0))
        at = (*i[:place], clamped(number, count), *i[place + 1 :])
        return te.select(inside, read(src, at, (place,)), input[i])

    return te.compute(input.shape, value, "slice_scatter")


def masked_fill(x: te.Tensor, mask: te.Tensor, *, value: float) -> te.Tensor:
    """`value` where the mask holds, else `x`."""
    filled = te.const(value, x.dtype)

    def scalar(e: TirExpr, masked: TirExpr) -> TirExpr:
        return te.select(masked, filled, e)

    return elementwise("masked_fill", scalar, x, mask)


LEGALIZE: Mapping[str, Legalize] = {
    "scatter_elements": scatter_elements,
    "scatter_nd": scatter_nd,
    "index_put": index_put,
    "slice_scatter": slice_scatter,
    "masked_fill": masked_fill,
}
