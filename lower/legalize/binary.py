"""Elementwise functions of two or three operands."""

import math
from collections.abc import Mapping

from relax_egraph.ir.dtypes import is_float
from relax_egraph.lower.legalize.elementwise import Legalize, Scalar, elementwise, numeric, table
from relax_egraph.lower.legalize.proven import need_equal
from relax_egraph.tir import te
from relax_egraph.tir.expr import TirExpr, binary


def add_scalars(x: TirExpr, y: TirExpr) -> TirExpr:
    """``x + y``; ``x or y`` for booleans, as in numpy."""
    return binary("or", x, y) if x.dtype == "bool" else x + y


def multiply_scalars(x: TirExpr, y: TirExpr) -> TirExpr:
    """``x · y``; ``x and y`` for booleans, as in numpy."""
    return binary("and", x, y) if x.dtype == "bool" else x * y


def _subtract(x: TirExpr, y: TirExpr) -> TirExpr:
    return numeric("subtract", x) - y


def _divide(x: TirExpr, y: TirExpr) -> TirExpr:
    return x / y


def _greater(x: TirExpr, y: TirExpr) -> TirExpr:
    return x > y


def _less(x: TirExpr, y: TirExpr) -> TirExpr:
    return x < y


def _greater_equal(x: TirExpr, y: TirExpr) -> TirExpr:
    return x >= y


def _less_equal(x: TirExpr, y: TirExpr) -> TirExpr:
    return x <= y


def _floor_divide(x: TirExpr, y: TirExpr) -> TirExpr:
    return numeric("floor_divide", x) // y


def _floor_mod(x: TirExpr, y: TirExpr) -> TirExpr:
    return numeric("floor_mod", x) % y


def _mod(x: TirExpr, y: TirExpr) -> TirExpr:
    return te.fmod(x, y) if is_float(x.dtype) else te.truncmod(numeric("mod", x), y)


def _log_add_exp(x: TirExpr, y: TirExpr) -> TirExpr:
    """``max(x, y) + log1p(e^-|x - y|)``; equal operands, which may be infinite, are doubled."""
    more = te.log1p(te.exp(te.abs(x - y) * -1))
    twice = x + te.const(math.log(2), x.dtype)
    return te.select(te.equal(x, y), twice, te.maximum(x, y) + more)


def _fma(x: TirExpr, y: TirExpr, z: TirExpr) -> TirExpr:
    if is_float(x.dtype):
        return te.fma(x, y, z)
    return add_scalars(multiply_scalars(x, y), z)


SCALARS: Mapping[str, Scalar] = {
    "add": add_scalars,
    "ewise_add": add_scalars,
    "subtract": _subtract,
    "multiply": multiply_scalars,
    "divide": _divide,
    "power": te.pow,
    "floor_divide": _floor_divide,
    "floor_mod": _floor_mod,
    "mod": _mod,
    "log_add_exp": _log_add_exp,
    "atan2": te.atan2,
    "maximum": te.maximum,
    "minimum": te.minimum,
    "greater": _greater,
    "less": _less,
    "equal": te.equal,
    "greater_equal": _greater_equal,
    "less_equal": _less_equal,
    "not_equal": te.not_equal,
    "bitwise_and": te.bitwise_and,
    "bitwise_or": te.bitwise_or,
    "bitwise_xor": te.bitwise_xor,
    "left_shift": te.shift_left,
    "right_shift": te.shift_right,
    "logical_and": te.logical_and,
    "logical_or": te.logical_or,
    "logical_xor": te.not_equal,
    "ewise_fma": _fma,
    "where": te.select,
}


def _of_one_shape(x: te.Tensor, y: te.Tensor) -> te.Tensor:
    need_equal(x.shape, y.shape)
    return elementwise("ewise_add", add_scalars, x, y)


LEGALIZE: Mapping[str, Legalize] = {**table(SCALARS), "ewise_add": _of_one_shape}
