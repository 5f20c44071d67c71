"""Image operators: padding, pixel shuffle, and grids of points."""

from collections.abc import Mapping

from relax_egraph.errors import NotLowerable
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.ops.image import pad_pairs
from relax_egraph.ir.struct_info import Shape
from relax_egraph.lower.legalize import resize
from relax_egraph.lower.legalize.elementwise import Legalize
from relax_egraph.lower.legalize.window import Place, all_of, any_read, clamped, element, place
from relax_egraph.tir import te
from relax_egraph.tir.expr import TirExpr, TirVar, from_dim


def pad(
    data: te.Tensor, *, pad_width: tuple[int, ...], pad_mode: str, pad_value: float
) -> te.Tensor:
    """Padding: the source element of each index, or `pad_value`.

    If data may be empty along a padded axis, its elements are read on condition.
    """
    pairs = pad_pairs("R.nn.pad", len(data.shape), pad_width, pad_mode)
    shape = [dims.add(d, b + a) for d, (b, a) in zip(data.shape, pairs, strict=True)]
    some = any_read(d for d, pair in zip(data.shape, pairs, strict=True) if any(pair))
    fill = _converted(pad_value, data.dtype)

    def places(i: tuple[TirVar, ...]) -> list[Place]:
        axes = zip(i, data.shape, pairs, strict=True)
        return [_source(pad_mode, index, extent, *pair) for index, extent, pair in axes]

    def value(*i: TirVar) -> TirExpr:
        at = places(i)
        if some == 1:
            return element(data, at, fill)
        inside = all_of([from_dim(some) > 0, *(c for p in at for c in p.conditions)])
        return te.if_then_else(inside, data[tuple(p.index for p in at)], fill)

    return te.compute(shape, value, "pad")


def _converted(value: float, dtype: str) -> TirExpr:
    return te.cast(te.const(value, "float64"), dtype)


def _source(mode: str, index: TirExpr, extent: Dim, before: int, after: int) -> Place:
    """The source index of the result's `index` along an axis."""
    if not before and not after:
        return Place(index)
    distance = index - before
    if mode == "constant":
        return place(distance, extent, below=before > 0, above=after > 0)
    if mode == "replicate":
        return Place(clamped(distance, extent))
    if mode == "circular":
        return Place(distance % te.maximum(from_dim(extent), 1))
    turn = (from_dim(extent) - 1) * 2
    there = distance % te.maximum(turn, 1)
    return Place(te.maximum(te.minimum(there, turn - there), 0))


def pixel_shuffle(data: te.Tensor, *, upscale_factor: int) -> te.Tensor:
    """Each channel of the result interleaves ``r²`` channels of data."""
    r = upscale_factor
    *batch, channels, height, width = data.shape
    if not dims.divides(r * r, channels):
        raise NotLowerable("whether the channels are a multiple is known only at run time")
    size = (dims.mul(height, r), dims.mul(width, r))

    def value(*i: TirVar) -> TirExpr:
        *head, c, y, x = i
        return data[(*head, c * (r * r) + (y % r) * r + x % r, y // r, x // r)]

    shape = (*batch, dims.floordiv(channels, r * r), *size)
    return te.compute(shape, value, "pixel_shuffle")


def affine_grid(data: te.Tensor, size: Shape, *, align_corners: bool) -> te.Tensor:
    """The product of a matrix and the coordinates of each point."""
    batch, rows, columns = data.shape
    rank = len(size)
    if not dims.equal(rows, rank) or not dims.equal(columns, rank + 1):
        raise NotLowerable("whether the matrices fit the grid is known only at run time")

    def value(*i: TirVar) -> TirExpr:
        n, k, *at = i
        total: TirExpr = data[n, k, rank]
        for column, (index, extent) in enumerate(zip(at[::-1], size[::-1], strict=True)):
            above = index * 2 + 1 - from_dim(extent)
            below = te.maximum(from_dim(extent) - (1 if align_corners else 0), 1)
            point = te.cast(above, data.dtype) / te.cast(below, data.dtype)
            total = total + data[n, k, column] * point
        return total

    return te.compute((batch, rank, *size), value, "affine_grid")


LEGALIZE: Mapping[str, Legalize] = {
    "nn.pad": pad,
    "nn.pixel_shuffle": pixel_shuffle,
    "image.affine_grid": affine_grid,
    **resize.LEGALIZE,
}
