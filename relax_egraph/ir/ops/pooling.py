"""What the attributes of a pool say, checked, and the extents of its result."""

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
    """A pool of windows of `sizes`, over axes of canonical order."""

    rank: int
    sizes: tuple[int, ...]
    windows: Windows
    ceil_mode: bool
    count_include_pad: bool
    data: Order
    out: Order

    def padding(self, k: int) -> int:
        """How many elements beside those of axis `k` windows may lie in; the last may stick out."""
        return self.windows.padding(k) + (self.windows.strides[k] - 1 if self.ceil_mode else 0)

    def extent(self, k: int, extent: Dim) -> Dim:
        """The result's extent along spatial axis `k`.

        With `ceil_mode` a window may stick out at the end, but none begins behind the last element.
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
    asked: str,
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
    """The pool over `rank` axes; raises `IllTyped` for attributes that mean nothing."""
    letters = f"NC{SPATIAL[rank]}"
    return Pool(
        rank,
        per_axis(asked, "pool_size", pool_size, rank),
        windows(asked, rank, strides, padding, dilation),
        ceil_mode,
        count_include_pad,
        order_of(asked, "layout", layout, letters),
        order_of(asked, "out_layout", out_layout or layout, letters),
    )


def pooled(asked: str, how: Pool, data: TensorStructInfo) -> StructInfo:
    """The struct info of the result; raises `IllTyped` where a window is proven not to fit."""
    check_rank(asked, "data", data, how.rank + 2)
    if data.dims is None:
        return tensor(None, data.dtype, how.rank + 2)
    _, _, *extents = canonical(data.dims, how.data)
    for k, extent in enumerate(extents):
        reach = how.windows.reach(k, how.sizes[k])
        check_fits(asked, SPATIAL[how.rank][k], reach, extent, how.padding(k))
    return tensor(how.shape(data.dims), data.dtype)


@dataclass(frozen=True, slots=True)
class AdaptivePool:
    """A pool to extents `sizes`, ``None`` for those of data, over axes of canonical order."""

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
    asked: str,
    rank: int,
    *,
    output_size: tuple[int, ...] | None,
    layout: str,
    out_layout: str | None,
) -> AdaptivePool:
    """The pool over `rank` axes; raises `IllTyped` for attributes that mean nothing."""
    letters = f"NC{SPATIAL[rank]}"
    return AdaptivePool(
        rank,
        None if output_size is None else per_axis(asked, "output_size", output_size, rank),
        order_of(asked, "layout", layout, letters),
        order_of(asked, "out_layout", out_layout or layout, letters),
    )


def adaptively_pooled(asked: str, how: AdaptivePool, data: TensorStructInfo) -> StructInfo:
    """The struct info of the result, of floating-point data."""
    check_rank(asked, "data", data, how.rank + 2)
    check_floating(asked, data)
    known = data.dims
    return tensor(None if known is None else how.shape(known), data.dtype, how.rank + 2)
