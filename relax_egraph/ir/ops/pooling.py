"""The attributes of a pool, checked, and the shape of its result."""

from dataclasses import dataclass

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.ops.window import (
    SPATIAL,
    Order,
    Windows,
    canonical,
    check_fits,
    check_floating,
    check_rank,
    laid_out,
    order_of,
    per_axis,
    windows,
)
from relax_egraph.ir.struct_info import Shape, StructInfo, TensorStructInfo, tensor


@dataclass(frozen=True, slots=True)
class Pool:
    """The attributes of a pool with windows of `sizes`, over axes in canonical order."""

    rank: int
    sizes: tuple[int, ...]
    windows: Windows
    ceil_mode: bool
    count_include_pad: bool
    data: Order
    out: Order

    def padding(self, k: int) -> int:
        """The elements around axis `k` that windows may cover: padding and overhang."""
        return self.windows.padding(k) + (self.windows.strides[k] - 1 if self.ceil_mode else 0)

    def extent(self, k: int, extent: Dim) -> Dim:
        """The result's extent along spatial axis `k`.

        With `ceil_mode` the last window may overhang; none begins behind the last element.
        """
        move = self.windows
        reach, stride = move.reach(k, self.sizes[k]), move.strides[k]
        free = dims.sub(dims.add(extent, self.padding(k)), reach)
        count = dims.add(dims.floordiv(free, stride), 1)
        if not self.ceil_mode or dims.prove_ge(reach, move.after[k] + stride):
            return count
        begun = dims.floordiv(dims.add(extent, move.before[k] + stride - 1), stride)
        return dims.minimum(count, begun)

    def shape(self, data: Shape) -> Shape:
        """The result's shape."""
        batch, channels, *extents = canonical(data, self.data)
        spatial = [self.extent(k, e) for k, e in enumerate(extents)]
        return laid_out((batch, channels, *spatial), self.out)


def pool(
    subject: str,
    rank: int,
    *,
    pool_size: tuple[int, ...],
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    ceil_mode: bool,
    count_include_pad: bool,
    layout: str,
    out_layout: str | None,
) -> Pool:
    """The attributes of a pool over `rank` axes; raises `IllTyped` for invalid ones."""
    letters = f"NC{SPATIAL[rank]}"
    return Pool(
        rank,
        per_axis(subject, "pool_size", pool_size, rank),
        windows(subject, rank, strides, padding, dilation),
        ceil_mode,
        count_include_pad,
        order_of(subject, "layout", layout, letters),
        order_of(subject, "out_layout", out_layout or layout, letters),
    )


def pooled(subject: str, attributes: Pool, data: TensorStructInfo) -> StructInfo:
    """The struct info of the result; raises `IllTyped` where a window is proven not to fit."""
    check_rank(subject, "data", data, attributes.rank + 2)
    if data.dims is None:
        return tensor(None, data.dtype, attributes.rank + 2)
    _, _, *extents = canonical(data.dims, attributes.data)
    for k, extent in enumerate(extents):
        reach = attributes.windows.reach(k, attributes.sizes[k])
        check_fits(subject, SPATIAL[attributes.rank][k], reach, extent, attributes.padding(k))
    return tensor(attributes.shape(data.dims), data.dtype)


@dataclass(frozen=True, slots=True)
class AdaptivePool:
    """The attributes of a pool to extents `sizes`, over axes in canonical order.

    ``None`` stands for the extents of the data.
    """

    rank: int
    sizes: tuple[int, ...] | None
    data: Order
    out: Order

    def extents(self, extents: Shape) -> Shape:
        """The result's spatial extents."""
        return extents if self.sizes is None else self.sizes

    def shape(self, data: Shape) -> Shape:
        """The result's shape."""
        batch, channels, *extents = canonical(data, self.data)
        return laid_out((batch, channels, *self.extents(tuple(extents))), self.out)


def adaptive_pool(
    subject: str,
    rank: int,
    *,
    output_size: tuple[int, ...] | None,
    layout: str,
    out_layout: str | None,
) -> AdaptivePool:
    """The attributes of a pool over `rank` axes; raises `IllTyped` for invalid ones."""
    letters = f"NC{SPATIAL[rank]}"
    return AdaptivePool(
        rank,
        None if output_size is None else per_axis(subject, "output_size", output_size, rank),
        order_of(subject, "layout", layout, letters),
        order_of(subject, "out_layout", out_layout or layout, letters),
    )


def adaptively_pooled(subject: str, attributes: AdaptivePool, data: TensorStructInfo) -> StructInfo:
    """The struct info of the result, of floating-point data."""
    check_rank(subject, "data", data, attributes.rank + 2)
    check_floating(subject, data)
    known = data.dims
    return tensor(
        None if known is None else attributes.shape(known), data.dtype, attributes.rank + 2
    )
