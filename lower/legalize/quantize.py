"""Quantization: conversions between floats and scaled integers."""

from collections.abc import Mapping

from relax_egraph.lower.legalize.elementwise import Legalize
from relax_egraph.lower.legalize.proven import need_equal
from relax_egraph.tir import te
from relax_egraph.tir.expr import TirExpr, TirVar


def quantize(
    data: te.Tensor, scale: te.Tensor, zero_point: te.Tensor, *, axis: int, out_dtype: str
) -> te.Tensor:
    """The quotient in the dtype of `data`; so is the sum, unless the zero point needs a wider one.

    The final cast saturates.
    """
    exact = "float64" if zero_point.dtype == "int32" else data.dtype

    def value(*i: TirVar) -> TirExpr:
        quotient = data[i] / _parameter(data, scale, axis, i)
        whole = te.select(te.isnan(quotient), te.const(0, data.dtype), te.nearbyint(quotient))
        zero = te.cast(_parameter(data, zero_point, axis, i), exact)
        shifted = te.cast(whole, exact) + zero
        return te.cast(shifted, out_dtype)

    return te.compute(data.shape, value, "quantize")


def dequantize(
    data: te.Tensor, scale: te.Tensor, zero_point: te.Tensor, *, axis: int, out_dtype: str
) -> te.Tensor:
    """The difference in int64, the product in `out_dtype`."""

    def value(*i: TirVar) -> TirExpr:
        zero = te.cast(_parameter(data, zero_point, axis, i), "int64")
        factor = te.cast(_parameter(data, scale, axis, i), out_dtype)
        return te.cast(te.cast(data[i], "int64") - zero, out_dtype) * factor

    return te.compute(data.shape, value, "dequantize")


def _parameter(data: te.Tensor, x: te.Tensor, axis: int, i: tuple[TirVar, ...]) -> TirExpr:
    """The element of `x`, a scalar or a vector along `axis`, for the element of `data` at `i`."""
    if x.shape in ((), (1,)):
        return x[(0,) * len(x.shape)]
    if not data.shape:
        need_equal(x.shape, (1,))
        return x[(0,)]
    place = axis % len(data.shape)
    need_equal(x.shape, (data.shape[place],))
    return x[i[place]]


LEGALIZE: Mapping[str, Legalize] = {"quantize": quantize, "dequantize": dequantize}
