"""Elementwise functions of two operands and three."""

from collections.abc import Mapping

from relax_egraph.lower.legalize.elementwise import Legalize, Scalar, numeric, table
from relax_egraph.tir import te
from relax_egraph.tir.expr import TirExpr, binary


def add_scalars(x: TirExpr, y: TirExpr) -> TirExpr:
    """``x + y``; of booleans ``x or y``, as numpy has it."""
    return binary("or", x, y) if x.dtype == "bool" else x + y


def multiply_scalars(x: TirExpr, y: TirExpr) -> TirExpr:
    """``x · y``; of booleans ``x and y``, as numpy has it."""
    return binary("and", x, y) if x.dtype == "bool" else x * y


def _subtract(x: TirExpr, y: TirExpr) -> TirExpr:
    return numeric("subtract", x) - y


def _divide(x: TirExpr, y: TirExpr) -> TirExpr:
    return x / y


def _greater(x: TirExpr, y: TirExpr) -> TirExpr:
    return x > y


def _less(x: TirExpr, y: TirExpr) -> TirExpr:
    return x < y


def _fma(x: TirExpr, y: TirExpr, z: TirExpr) -> TirExpr:
    if x.dtype.startswith("float"):
        return te.fma(x, y, z)
    return add_scalars(multiply_scalars(x, y), z)


SCALARS: Mapping[str, Scalar] = {
    "add": add_scalars,
    "subtract": _subtract,
    "multiply": multiply_scalars,
    "divide": _divide,
    "power": te.pow,
    "maximum": te.maximum,
    "minimum": te.minimum,
    "greater": _greater,
    "less": _less,
    "equal": te.equal,
    "ewise_fma": _fma,
    "where": te.select,
}

LEGALIZE: Mapping[str, Legalize] = table(SCALARS)
