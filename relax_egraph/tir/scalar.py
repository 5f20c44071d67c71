"""The scalar functions that the elements of tensors are written in."""

from collections.abc import Callable

import numpy as np

from relax_egraph.tir.expr import Cast, Imm, Intrinsic, Operand, Select, TirExpr, as_expr, binary


def const(value: float, dtype: str) -> Imm:
    """The literal `value`, rounded to what `dtype` holds."""
    if dtype.startswith("float"):
        return Imm(float(np.dtype(dtype).type(value)), dtype)
    return Imm(int(bool(value)) if dtype == "bool" else int(value), dtype)


def least(dtype: str) -> float | int:
    """The least value of `dtype`: minus infinity of a float."""
    if dtype.startswith("float"):
        return float("-inf")
    return 0 if dtype == "bool" else int(np.iinfo(dtype).min)


def greatest(dtype: str) -> float | int:
    """The greatest value of `dtype`: infinity of a float."""
    if dtype.startswith("float"):
        return float("inf")
    return 1 if dtype == "bool" else int(np.iinfo(dtype).max)


def select(condition: TirExpr, a: Operand, b: Operand) -> TirExpr:
    """``a if condition else b``; a number takes the dtype of the other side.

    Both sides are evaluated, so that neither may index outside of its buffer.
    """
    dtype = getattr(a, "dtype", None) or getattr(b, "dtype", "int64")
    return Select(condition, as_expr(a, dtype), as_expr(b, dtype))


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


exp = _function("exp")
log = _function("log")
sqrt = _function("sqrt")
rsqrt = _function("rsqrt")
tanh = _function("tanh")
erf = _function("erf")
sigmoid = _function("sigmoid")
abs = _function("abs")
pow = _function("pow")
fma = _function("fma")
