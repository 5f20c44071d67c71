"""The attributes of a resize, checked, and the struct info of its result."""

from dataclasses import dataclass

from relax_egraph.errors import IllTyped
from relax_egraph.ir.dtypes import DTYPES
from relax_egraph.ir.ops.window import SPATIAL, Order, canonical, check_rank, laid_out, order_of
from relax_egraph.ir.struct_info import Shape, ShapeStructInfo, StructInfo, TensorStructInfo, tensor

TAPS = {"nearest_neighbor": 1, "linear": 2, "cubic": 4}
"""The number of pixels along an axis that each method reads."""

CROP = "tf_crop_and_resize"
"""The mode that resizes a region of interest, in fractions of the image."""

MODES = (
    "half_pixel",
    "align_corners",
    "asymmetric",
    "pytorch_half_pixel",
    "tf_half_pixel_for_nn",
    CROP,
)

ROUNDINGS = ("", "round", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


@dataclass(frozen=True, slots=True)
class Resize:
    """The attributes of a resize over `rank` axes in canonical order.

    `roi`, the region of interest, has a start and an end for each axis.

    `rounding` is never ``""``; `out_dtype` is ``None`` for that of the data.
    """

    rank: int
    roi: tuple[tuple[float, float], ...]
    data: Order
    method: str
    mode: str
    rounding: str
    alpha: float
    exclude: bool
    extrapolation: float
    out_dtype: str | None

    def shape(self, data: Shape, size: Shape) -> Shape:
        """The result's shape."""
        return laid_out((*canonical(data, self.data)[:2], *size), self.data)


def resizing(
    subject: str,
    rank: int,
    *,
    roi: tuple[float, ...] | None,
    layout: str,
    method: str,
    coordinate_transformation_mode: str,
    rounding_method: str,
    cubic_alpha: float,
    cubic_exclude: int,
    extrapolation_value: float,
    out_dtype: str | None,
) -> Resize:
    """The attributes of a resize over `rank` axes; raises `IllTyped` for invalid ones."""
    _check_one_of(subject, "method", method, tuple(TAPS))
    mode = coordinate_transformation_mode
    _check_one_of(subject, "coordinate_transformation_mode", mode, MODES)
    _check_one_of(subject, "rounding_method", rounding_method, ROUNDINGS)
    if out_dtype not in (None, "", "void", *DTYPES):
        raise IllTyped(f"{subject}: out_dtype is {out_dtype!r}, needs one of {', '.join(DTYPES)}")
    region = (0.0,) * (2 * rank) if roi is None else roi
    if len(region) != 2 * rank:
        raise IllTyped(f"{subject}: roi is {list(region)}, needs {2 * rank} values")
    return Resize(
        rank,
        tuple(zip(region[:rank], region[rank:], strict=True)),
        order_of(subject, "layout", layout, f"NC{SPATIAL[rank]}"),
        method,
        mode,
        rounding_method or ("round" if mode == "align_corners" else "floor"),
        cubic_alpha,
        bool(cubic_exclude),
        extrapolation_value,
        None if out_dtype in ("", "void") else out_dtype,
    )


def resized(
    subject: str, attributes: Resize, data: TensorStructInfo, size: ShapeStructInfo
) -> StructInfo:
    """The struct info of the result."""
    check_rank(subject, "data", data, attributes.rank + 2)
    if size.ndim not in (-1, attributes.rank):
        raise IllTyped(f"{subject}: needs a size of {attributes.rank} extents")
    dtype = attributes.out_dtype or data.dtype
    if data.dims is None or size.values is None:
        return tensor(None, dtype, attributes.rank + 2)
    return tensor(attributes.shape(data.dims, size.values), dtype)


def _check_one_of(subject: str, what: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        names = ", ".join(k or '""' for k in known)
        raise IllTyped(f"{subject}: {what} is {value!r}, needs one of {names}")
