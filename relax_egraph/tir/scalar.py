"""The scalar functions for the elements of tensor expressions."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from relax_egraph.ir.dtypes import computed, is_float
from relax_egraph.tir.expr import (
    Cast,
    Imm,
    Intrinsic,
    Not,
    Operand,
    Select,
    TirExpr,
    as_expr,
    binary,
)


def const(value: float, dtype: str) -> Imm:
    """The literal `value`, rounded to the dtype of the arithmetic of `dtype`."""
    if is_float(dtype):
        return Imm(float(np.dtype(computed(dtype)).type(value)), dtype)
    return Imm(int(bool(value)) if dtype == "bool" else int(value), dtype)


def least(dtype: str) -> float | int:
    """The least value of `dtype`: minus infinity of a float."""
    if is_float(dtype):
        return float("-inf")
    return 0 if dtype == "bool" else int(np.iinfo(dtype).min)


def greatest(dtype: str) -> float | int:
    """The greatest value of `dtype`: infinity of a float."""
    if is_float(dtype):
        return float("inf")
    return 1 if dtype == "bool" else int(np.iinfo(dtype).max)


def select(condition: TirExpr, a: Operand, b: Operand) -> TirExpr:
    """``a if condition else b``; a number takes the dtype of the other side.

    Both sides are evaluated, so that neither may index outside of its buffer.
    """
    dtype = getattr(a, "dtype", None) or getattr(b, "dtype", "int64")
    return Select(condition, as_expr(a, dtype), as_expr(b, dtype))


def if_then_else(condition: TirExpr, a: Operand, b: Operand) -> TirExpr:
    """``a if condition else b``, as `select`, but the other side reads no memory."""
    chosen = select(condition, a, b)
    return replace(chosen, lazy=True) if isinstance(chosen, Select) else chosen


def cast(value: Operand, dtype: str) -> TirExpr:
    """`value` converted to `dtype`; to ``bool``, whether it is not 0."""
    expr = as_expr(value)
    if expr.dtype == dtype:
        return expr
    return not_equal(expr, 0) if dtype == "bool" else Cast(dtype, expr)


def equal(a: Operand, b: Operand) -> TirExpr:
    """``a == b``: Python's operator compares the nodes themselves."""
    return binary("==", a, b)


def not_equal(a: Operand, b: Operand) -> TirExpr:
    """``a != b``: Python's operator compares the nodes themselves."""
    return binary("!=", a, b)


def logical_and(a: TirExpr, b: TirExpr) -> TirExpr:
    """``a and b`` of booleans."""
    return binary("and", a, b)


def logical_or(a: TirExpr, b: TirExpr) -> TirExpr:
    """``a or b`` of booleans."""
    return binary("or", a, b)


def logical_not(a: TirExpr) -> TirExpr:
    """``not a`` of a boolean."""
    return Not(a)


def maximum(a: Operand, b: Operand) -> TirExpr:
    """``max(a, b)``; NaN if either is."""
    return binary("max", a, b)


def minimum(a: Operand, b: Operand) -> TirExpr:
    """``min(a, b)``; NaN if either is."""
    return binary("min", a, b)


def _function(name: str) -> Callable[..., TirExpr]:
    def apply(*args: TirExpr) -> TirExpr:
        return Intrinsic(name, args)

    apply.__name__ = name
    return apply


abs = _function("abs")
acos = _function("acos")
acosh = _function("acosh")
asin = _function("asin")
asinh = _function("asinh")
atan = _function("atan")
atan2 = _function("atan2")
atanh = _function("atanh")
bitwise_and = _function("bitwise_and")
bitwise_not = _function("bitwise_not")
bitwise_or = _function("bitwise_or")
bitwise_xor = _function("bitwise_xor")
ceil = _function("ceil")
copysign = _function("copysign")
cos = _function("cos")
cosh = _function("cosh")
erf = _function("erf")
exp = _function("exp")
exp_nonpositive = _function("exp_nonpositive")
expm1 = _function("expm1")
floor = _function("floor")
fma = _function("fma")
fmod = _function("fmod")
isfinite = _function("isfinite")
isinf = _function("isinf")
isnan = _function("isnan")
log = _function("log")
log1p = _function("log1p")
nearbyint = _function("nearbyint")
pow = _function("pow")
round = _function("round")
rsqrt = _function("rsqrt")
shift_left = _function("shift_left")
shift_right = _function("shift_right")
sigmoid = _function("sigmoid")
sin = _function("sin")
sinh = _function("sinh")
sqrt = _function("sqrt")
tan = _function("tan")
tanh = _function("tanh")
trunc = _function("trunc")
truncmod = _function("truncmod")
