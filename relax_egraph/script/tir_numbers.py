"""Numbers of the loop language: limits of dtypes, conversions, quotients rounded towards zero."""

import math

import numpy as np

from relax_egraph.ir.dtypes import is_float, is_integer, limits
from relax_egraph.tir.expr import Binary, Cast, Imm, Select, TirExpr


def extreme(name: str, dtype: str) -> Imm:
    """``T.min_value(dtype)``, ``T.max_value(dtype)``, ``T.infinity(dtype)``."""
    if not is_float(dtype):
        range_ = np.iinfo(dtype)
        return Imm(int(range_.min if name == "T.min_value" else range_.max), dtype)
    if name == "T.infinity":
        return Imm(math.inf, dtype)
    limit = float(limits(dtype).max)
    return Imm(-limit if name == "T.min_value" else limit, dtype)


def as_float(value: TirExpr, dtype: str) -> TirExpr:
    """A whole number beside a float, which TVM converts to its dtype."""
    if not is_integer(value.dtype):
        return value
    return Imm(float(value.value), dtype) if isinstance(value, Imm) else Cast(dtype, value)


def quotient(a: TirExpr, b: TirExpr) -> TirExpr:
    """A quotient of floats, or of whole numbers rounded towards zero."""
    if is_float(a.dtype):
        return Binary("/", a, b)
    zero = Imm(0, a.dtype)
    if isinstance(b, Imm) and b.value > 0:
        up = Binary("-", zero, Binary("//", Binary("-", zero, a), b))
        return Select(Binary("<", a, zero), up, Binary("//", a, b))
    magnitudes = [Binary("max", x, Binary("-", zero, x)) for x in (a, b)]
    down = Binary("//", *magnitudes)
    is_negative = Binary("!=", Binary("<", a, zero), Binary("<", b, zero))
    return Select(is_negative, Binary("-", zero, down), down)
