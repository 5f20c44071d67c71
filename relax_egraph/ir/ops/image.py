"""Images: padding, the shuffle of pixels, resizing, and grids of points in them."""

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.resizing import resized, resizing
from relax_egraph.ir.ops.window import check_floating, check_rank
from relax_egraph.ir.requirements import differ
from relax_egraph.ir.struct_info import (
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    tensor,
)

PAD_MODES = ("constant", "reflect", "replicate", "circular")


def pad_pairs(
    subject: str, ndim: int, pad_width: tuple[int, ...], pad_mode: str
) -> list[tuple[int, int]]:
    """The padding of each axis, before its first and after its last element; `ndim` may be -1."""
    if pad_mode not in PAD_MODES:
        raise IllTyped(f"{subject}: pad_mode is {pad_mode!r}, needs one of {', '.join(PAD_MODES)}")
    if len(pad_width) % 2 or ndim not in (-1, len(pad_width) // 2):
        count = f"{2 * ndim}" if ndim >= 0 else "an even number of"
        raise IllTyped(f"{subject}: pad_width is {list(pad_width)}, needs {count} values")
    if min(pad_width, default=0) < 0:
        raise IllTyped(f"{subject}: pad_width is {list(pad_width)}, needs values of 0 or more")
    return [*zip(pad_width[::2], pad_width[1::2], strict=True)]


@op("nn")
def pad(
    data: TensorStructInfo,
    *,
    pad_width: tuple[int, ...],
    pad_mode: str = "constant",
    pad_value: float = 0.0,
) -> StructInfo:
    """``out[i, …] = data[i - before, …]``, and around it what `pad_mode` says.

    `pad_width` has for each axis how much it grows before and after.  ``constant`` is `pad_value`,
    ``replicate`` the nearest element; ``circular`` goes on at the other end, and ``reflect`` back
    from the last element, as often as needed.  There is `pad_value` where data is empty.
    """
    pairs = pad_pairs(f"R.nn.pad of {data}", data.ndim, pad_width, pad_mode)
    if data.dims is None:
        return tensor(None, data.dtype, len(pairs))
    shape = [dims.add(d, b + a) for d, (b, a) in zip(data.dims, pairs, strict=True)]
    return tensor(tuple(shape), data.dtype)


@op("nn")
def pixel_shuffle(data: TensorStructInfo, *, upscale_factor: int) -> StructInfo:
    """``out[…, c, y · r + i, x · r + j] = data[…, c · r² + i · r + j, y, x]``, r the factor."""
    subject = f"R.nn.pixel_shuffle of {data}"
    if upscale_factor < 1:
        raise IllTyped(f"{subject}: upscale_factor is {upscale_factor}, needs 1 or more")
    if 0 <= data.ndim < 3:
        raise IllTyped(f"{subject}: needs a tensor of rank 3 or more")
    if data.dims is None:
        return tensor(None, data.dtype, data.ndim)
    *batch, channels, height, width = data.dims
    square = upscale_factor**2
    if differ(dims.mod(channels, square), 0):
        raise IllTyped(f"{subject}: {dims.text(channels)} channels are no multiple of {square}")
    size = (dims.mul(height, upscale_factor), dims.mul(width, upscale_factor))
    return tensor((*batch, dims.floordiv(channels, square), *size), data.dtype)


@op("image")
def resize2d(
    data: TensorStructInfo,
    size: ShapeStructInfo,
    *,
    roi: tuple[float, ...] | None = None,
    layout: str = "NCHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "round",
    cubic_alpha: float = -0.75,
    cubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
) -> StructInfo:
    """``out[n, c, y, x]``: data between its pixels, interpolated by `method`, at ``size``.

    Coordinates are computed exactly.  Beyond its border data is as at the border, but with
    `cubic_exclude` has no weight; with ``tf_crop_and_resize`` such points are
    `extrapolation_value`.  Rounding is half to even with ``round``, half up with
    ``round_prefer_ceil``, half down with ``round_prefer_floor``; ``""`` is ``round`` with
    ``align_corners``, else ``floor``.  Interpolated values are truncated towards zero to integers;
    0 of an image without pixels.
    """
    subject = f"R.image.resize2d of {data} to {size}"
    attributes = resizing(
        subject,
        2,
        roi=roi,
        layout=layout,
        method=method,
        coordinate_transformation_mode=coordinate_transformation_mode,
        rounding_method=rounding_method,
        cubic_alpha=cubic_alpha,
        cubic_exclude=cubic_exclude,
        extrapolation_value=extrapolation_value,
        out_dtype=out_dtype,
    )
    return resized(subject, attributes, data, size)


@op("image")
def resize3d(
    data: TensorStructInfo,
    size: ShapeStructInfo,
    *,
    roi: tuple[float, ...] | None = None,
    layout: str = "NCDHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    cubic_alpha: float = -0.75,
    cubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
) -> StructInfo:
    """``out[n, c, z, y, x]``: `resize2d` over three axes."""
    subject = f"R.image.resize3d of {data} to {size}"
    attributes = resizing(
        subject,
        3,
        roi=roi,
        layout=layout,
        method=method,
        coordinate_transformation_mode=coordinate_transformation_mode,
        rounding_method=rounding_method,
        cubic_alpha=cubic_alpha,
        cubic_exclude=cubic_exclude,
        extrapolation_value=extrapolation_value,
        out_dtype=out_dtype,
    )
    return resized(subject, attributes, data, size)


@op("image")
def affine_grid(
    data: TensorStructInfo, size: ShapeStructInfo, *, align_corners: bool = True
) -> StructInfo:
    """``out[n, k, y, x] = data[n, k, :] · (x', y', 1)``, or ``(x', y', z', 1)``; of floats.

    ``x' = (2x + 1 - W) / (W - 1)`` runs from -1 to 1 with `align_corners`, else it is
    ``(2x + 1 - W) / W``; 0 where there is one point.
    """
    subject = f"R.image.affine_grid of {data} to {size}"
    check_floating(subject, data)
    check_rank(subject, "data", data, 3)
    if size.ndim not in (-1, 2, 3):
        raise IllTyped(f"{subject}: needs a size of 2 or 3 extents")
    rank = size.ndim
    ndim = -1 if rank < 0 else rank + 2
    if data.dims is None or size.values is None:
        return tensor(None, data.dtype, ndim)
    batch, rows, columns = data.dims
    if differ(rows, rank) or differ(columns, rank + 1):
        raise IllTyped(f"{subject}: needs data of shape (n, {rank}, {rank + 1})")
    return tensor((batch, rank, *size.values), data.dtype)
