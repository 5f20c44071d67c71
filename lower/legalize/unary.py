"""Elementwise functions of one operand."""

from collections.abc import Mapping

import numpy as np

from relax_egraph.ir.dtypes import computed, is_float, is_signed
from relax_egraph.ir.reference.unary import clip_bound
from relax_egraph.lower.legalize.elementwise import Legalize, Scalar, numeric, table
from relax_egraph.tir import te
from relax_egraph.tir.expr import TirExpr


def _negative(x: TirExpr) -> TirExpr:
    # -x for floats: 0 - x would never be -0.0.
    return x * -1 if is_float(x.dtype) else -numeric("negative", x)


def _abs(x: TirExpr) -> TirExpr:
    return te.abs(x) if is_signed(x.dtype) else x


def _square(x: TirExpr) -> TirExpr:
    return numeric("square", x) * x


def _sign(x: TirExpr) -> TirExpr:
    """-1, 0 or 1; NaN for NaN."""
    if not is_signed(numeric("sign", x).dtype):
        return te.minimum(x, 1)
    return te.select(x > 0, 1, te.select(x < 0, -1, x))


def _integral(rounding: Scalar) -> Scalar:
    """`rounding` for floats; integers are unchanged."""

    def apply(x: TirExpr) -> TirExpr:
        return rounding(x) if is_float(x.dtype) else x

    return apply


def _tested(test: Scalar, *, of_integers: bool) -> Scalar:
    """`test` for floats, and a constant for integers."""

    def apply(x: TirExpr) -> TirExpr:
        return test(x) if is_float(x.dtype) else te.const(of_integers, "bool")

    return apply


SCALARS: Mapping[str, Scalar] = {
    "abs": _abs,
    "negative": _negative,
    "square": _square,
    "sign": _sign,
    "ceil": _integral(te.ceil),
    "floor": _integral(te.floor),
    "round": _integral(te.nearbyint),
    "trunc": _integral(te.trunc),
    "isfinite": _tested(te.isfinite, of_integers=True),
    "isinf": _tested(te.isinf, of_integers=False),
    "isnan": _tested(te.isnan, of_integers=False),
    "bitwise_not": te.bitwise_not,
    "logical_not": te.logical_not,
    "sin": te.sin,
    "cos": te.cos,
    "tan": te.tan,
    "asin": te.asin,
    "acos": te.acos,
    "atan": te.atan,
    "sinh": te.sinh,
    "cosh": te.cosh,
    "asinh": te.asinh,
    "acosh": te.acosh,
    "atanh": te.atanh,
    "exp": te.exp,
    "log": te.log,
    "sqrt": te.sqrt,
    "rsqrt": te.rsqrt,
    "tanh": te.tanh,
    "erf": te.erf,
    "sigmoid": te.sigmoid,
}


def astype(x: te.Tensor, *, dtype: str) -> te.Tensor:
    """``x`` converted to `dtype`; for ``bool``, whether it is not 0."""
    return te.compute(x.shape, lambda *i: te.cast(x[i], dtype), "astype")


def clip(x: te.Tensor, *, min: float, max: float) -> te.Tensor:
    """``x`` clamped to [`min`, `max`] in its own dtype."""
    dtype = np.dtype(computed(x.dtype))
    low, high = (te.const(clip_bound(b, dtype).item(), x.dtype) for b in (min, max))
    return te.compute(x.shape, lambda *i: te.minimum(te.maximum(x[i], low), high), "clip")


LEGALIZE: Mapping[str, Legalize] = {**table(SCALARS), "astype": astype, "clip": clip}
