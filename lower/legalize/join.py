"""Operators that join and split tensors."""

from collections.abc import Mapping
from itertools import accumulate, pairwise

from relax_egraph.errors import NotLowerable
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.ops.join import meshgrid_order, split_bounds
from relax_egraph.ir.struct_info import Shape
from relax_egraph.lower.legalize.elementwise import Legalize
from relax_egraph.lower.legalize.manipulate import flatten
from relax_egraph.lower.legalize.proven import need_equal
from relax_egraph.lower.legalize.slices import Place, copied
from relax_egraph.tir import te
from relax_egraph.tir.expr import Operand, TirExpr, TirVar, from_dim
from relax_egraph.tir.stmt import PrimFunc

Tensors = tuple[te.Tensor, ...]


def concat(tensors: Tensors, *, axis: int | None) -> PrimFunc:
    """`tensors` concatenated along `axis`; without an axis, all their elements in one row."""
    if axis is None:
        ends = _ends(tuple(dims.product(t.shape) for t in tensors))
        rows = [_row(t.shape, start) for t, start in zip(tensors, ends, strict=False)]
        return copied("concat", (ends[-1],), tensors, rows)
    place = axis % len(tensors[0].shape)
    rest = _one_shape([(*t.shape[:place], *t.shape[place + 1 :]) for t in tensors])
    ends = _ends(tuple(t.shape[place] for t in tensors))
    shape = (*rest[:place], ends[-1], *rest[place:])
    return copied("concat", shape, tensors, [_shifted(place, start) for start in ends[:-1]])


def joined(tensors: Tensors, *, axis: int | None) -> te.Tensor:
    """`concat` as a tensor expression, for loops that read each element in place."""
    parts = tuple(map(flatten, tensors)) if axis is None else tensors
    place = 0 if axis is None else axis % len(parts[0].shape)
    rest = _one_shape([(*t.shape[:place], *t.shape[place + 1 :]) for t in parts])
    ends = _ends(tuple(t.shape[place] for t in parts))

    def value(*i: TirVar) -> TirExpr:
        def read(k: int) -> TirExpr:
            at = i[place] - from_dim(ends[k]) if k else i[place]
            return parts[k][(*i[:place], at, *i[place + 1 :])]

        result = read(len(parts) - 1)
        for k in reversed(range(len(parts) - 1)):
            result = te.if_then_else(i[place] < from_dim(ends[k + 1]), read(k), result)
        return result

    return te.compute((*rest[:place], ends[-1], *rest[place:]), value, "concat")


def stack(tensors: Tensors, *, axis: int) -> PrimFunc:
    """`tensors` of one shape, stacked along a new axis `axis`."""
    rest = _one_shape([t.shape for t in tensors])
    place = axis % (len(rest) + 1)
    shape = (*rest[:place], len(tensors), *rest[place:])
    return copied("stack", shape, tensors, [_beside(place, k) for k in range(len(tensors))])


def split(
    x: te.Tensor, *, indices_or_sections: int | tuple[int, ...], axis: int
) -> list[te.Tensor]:
    """The parts of `x` along `axis`."""
    place = axis % len(x.shape)
    bounds = split_bounds(x.shape[place], indices_or_sections)
    _need_several("split", len(bounds) - 1)
    return [_part(x, place, start, end) for start, end in pairwise(bounds)]


def meshgrid(tensors: Tensors, *, indexing: str) -> list[te.Tensor]:
    """``out[k][i₀, i₁, …] = tensors[k][iₖ]``."""
    _need_several("meshgrid", len(tensors))
    order = meshgrid_order(len(tensors), indexing)
    shape = [tensors[k].shape[0] for k in order]

    def spread(k: int) -> te.Tensor:
        def value(*i: TirVar) -> TirExpr:
            return tensors[k][i[order.index(k)]]

        return te.compute(shape, value, "meshgrid")

    return [spread(k) for k in range(len(tensors))]


def _need_several(name: str, count: int) -> None:
    if count == 1:
        raise NotLowerable(f"R.{name} into one part: a loop function returns no tuple of one")


def _part(x: te.Tensor, place: int, start: Dim, end: Dim) -> te.Tensor:
    shape = (*x.shape[:place], dims.sub(end, start), *x.shape[place + 1 :])

    def value(*i: TirVar) -> TirExpr:
        return x[(*i[:place], i[place] + from_dim(start), *i[place + 1 :])]

    return te.compute(shape, value, "split")


def _row(shape: Shape, start: Dim) -> Place:
    """The row-major places of the elements of `shape` in one row, from `start` on."""

    def place(i: tuple[TirVar, ...]) -> tuple[Operand, ...]:
        flat = from_dim(0)
        for axis, extent in zip(i, shape, strict=True):
            flat = flat * from_dim(extent) + axis
        return (flat + from_dim(start),)

    return place


def _shifted(axis: int, start: Dim) -> Place:
    return lambda i: (*i[:axis], i[axis] + from_dim(start), *i[axis + 1 :])


def _beside(axis: int, number: int) -> Place:
    return lambda i: (*i[:axis], number, *i[axis:])


def _ends(extents: Shape) -> Shape:
    """The start of each of the concatenated `extents`, and the end of the last one."""
    return tuple(accumulate(extents, dims.add, initial=0))


def _one_shape(shapes: list[Shape]) -> Shape:
    for shape in shapes:
        need_equal(shapes[0], shape)
    return shapes[0]


LEGALIZE: Mapping[str, Legalize] = {
    "concat": concat,
    "stack": stack,
    "split": split,
    "meshgrid": meshgrid,
}
