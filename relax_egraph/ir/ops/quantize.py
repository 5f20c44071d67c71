"""Between floating-point numbers and scaled integers."""

from relax_egraph.errors import IllTyped
from relax_egraph.ir.dtypes import FLOATS
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.manipulate import normalize_axis
from relax_egraph.ir.ops.operand_checks import one_float, subject_of
from relax_egraph.ir.requirements import misfits
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, shape_text, tensor

NARROW = ("int8", "uint8", "int16", "uint16")
"""The dtypes of quantised numbers."""

WIDE = (*NARROW, "int32")
"""The dtypes that can be dequantised, and those of zero points."""


@op()
def quantize(
    data: TensorStructInfo,
    scale: TensorStructInfo,
    zero_point: TensorStructInfo,
    *,
    axis: int = -1,
    out_dtype: str = "int8",
) -> StructInfo:
    """``out = round(data / scale) + zero_point``, clamped to what `out_dtype` holds.

    Halves are rounded to even, and NaN is taken for 0.  `scale` and `zero_point` are numbers, or
    vectors along `axis`.
    """
    subject = subject_of("quantize", data, scale, zero_point)
    one_float(subject, data, scale)
    _check("quantize", data, scale, zero_point, axis)
    _one_of(subject, "out_dtype", out_dtype, NARROW)
    return tensor(data.dims, out_dtype, data.ndim)


@op()
def dequantize(
    data: TensorStructInfo,
    scale: TensorStructInfo,
    zero_point: TensorStructInfo,
    *,
    axis: int = -1,
    out_dtype: str = "float32",
) -> StructInfo:
    """``out = (data - zero_point) · scale``, the difference exact and then rounded to `out_dtype`.

    `scale` and `zero_point` are numbers, or vectors along `axis`.
    """
    subject = subject_of("dequantize", data, scale, zero_point)
    if data.dtype is not None:
        _one_of(subject, "the dtype of data", data.dtype, WIDE)
    one_float(subject, scale)
    _check("dequantize", data, scale, zero_point, axis)
    _one_of(subject, "out_dtype", out_dtype, FLOATS)
    return tensor(data.dims, out_dtype, data.ndim)


def _check(
    name: str,
    data: TensorStructInfo,
    scale: TensorStructInfo,
    zero_point: TensorStructInfo,
    axis: int,
) -> None:
    subject = subject_of(name, data, scale, zero_point)
    if zero_point.dtype is not None:
        _one_of(subject, "the dtype of zero_point", zero_point.dtype, WIDE)
    place = axis
    if data.ndim > 0:
        place = normalize_axis(name, data, axis)
    for what, info in (("scale", scale), ("zero_point", zero_point)):
        if info.ndim > 1:
            raise IllTyped(f"{subject}: {what} has rank {info.ndim}, needs 0 or 1")
        if info.ndim != 1 or info.dims is None or data.dims is None:
            continue
        have, want = info.dims[0], data.dims[place] if data.dims else 1
        if misfits(have, want):
            raise IllTyped(
                f"{subject}: {what} has shape {shape_text(info.dims)}, needs (), (1,) or "
                f"{shape_text((want,))}"
            )


def _one_of(subject: str, what: str, dtype: str, allowed: tuple[str, ...]) -> None:
    if dtype not in allowed:
        raise IllTyped(f'{subject}: {what} is "{dtype}", needs one of {", ".join(allowed)}')
