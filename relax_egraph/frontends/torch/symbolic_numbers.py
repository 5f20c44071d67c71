"""Symbolic numbers and conditions of torch as tensors of rank 0, computed by the run."""

from collections.abc import Mapping
from functools import reduce
from typing import Any

import sympy

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import Builder, dtype_of
from relax_egraph.frontends.building.dim_tensors import vector_of
from relax_egraph.frontends.torch.symbols import Symbols
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.expr import Expr, ShapeExpr

_OF_NUMBERS: Mapping[str, str] = {
    "Add": "add",
    "Mul": "multiply",
    "Pow": "power",
    "PowByNatural": "power",
    "FloatPow": "power",
    "FloorDiv": "floor_divide",
    "CleanDiv": "floor_divide",
    "Mod": "floor_mod",
    "PythonMod": "floor_mod",
    "Max": "maximum",
    "Min": "minimum",
    "GreaterThan": "greater_equal",
    "StrictGreaterThan": "greater",
    "LessThan": "less_equal",
    "StrictLessThan": "less",
    "Equality": "equal",
    "Unequality": "not_equal",
}
"""Operators by torch's functions of numbers, which are float64 if one of them is, else int64."""

_OF_FLOATS: Mapping[str, str] = {
    "IntTrueDiv": "divide",
    "FloatTrueDiv": "divide",
    "OpaqueUnaryFn_sqrt": "sqrt",
    "OpaqueUnaryFn_exp": "exp",
    "OpaqueUnaryFn_log": "log",
    "OpaqueUnaryFn_log2": "log2",
    "OpaqueUnaryFn_sin": "sin",
    "OpaqueUnaryFn_cos": "cos",
    "OpaqueUnaryFn_tanh": "tanh",
}
"""Operators by torch's functions of floats."""

_TO_INTEGERS: Mapping[str, str] = {
    "TruncToInt": "trunc",
    "FloorToInt": "floor",
    "CeilToInt": "ceil",
    "RoundToInt": "round",
}
"""Operators by torch's functions of a float to an integer."""

_OF_CONDITIONS: Mapping[str, str] = {
    "And": "logical_and",
    "Or": "logical_or",
    "Not": "logical_not",
}
"""Operators by functions of conditions."""


def number_of(b: Any, symbols: Symbols, expr: Any) -> Expr:
    """`expr`, an expression of torch, as a tensor of rank 0: int64, float64 or bool."""
    if expr in (sympy.true, sympy.false):
        return b.scalar(bool(expr), "bool")
    if expr.is_Integer:
        return b.scalar(int(expr), "int64")
    if expr.is_number:
        return b.scalar(float(expr), "float64")
    if isinstance(expr, sympy.Symbol):
        if expr.name in symbols.numbers:
            return symbols.numbers[expr.name]
        flat = vector_of(b.bb, (symbols.symbol(expr.name),))
        return b.emit("reshape", flat, ShapeExpr(()))
    if isinstance(expr, sympy.Piecewise):
        pieces: list[Any] = list(expr.args)
        *cases, (value, _) = pieces
        chosen = number_of(b, symbols, value)
        for value, condition in reversed(cases):
            here = number_of(b, symbols, condition)
            chosen = b.emit("where", here, number_of(b, symbols, value), chosen)
        return chosen
    operands = [number_of(b, symbols, part) for part in expr.args]
    return _called(b, type(expr).__name__, operands)


def _called(b: Builder, name: str, operands: list[Expr]) -> Expr:
    if name == "Identity":
        return operands[0]
    if name == "ToFloat":
        return b.cast(operands[0], "float64")
    if name in _TO_INTEGERS:
        return b.cast(b.emit(_TO_INTEGERS[name], b.cast(operands[0], "float64")), "int64")
    if name in _OF_NUMBERS:
        has_float = any(is_float(dtype_of(operand)) for operand in operands)
        return _folded(b, _OF_NUMBERS[name], operands, "float64" if has_float else "int64")
    if name in _OF_FLOATS:
        return _folded(b, _OF_FLOATS[name], operands, "float64")
    if name in _OF_CONDITIONS:
        return _folded(b, _OF_CONDITIONS[name], operands, "bool")
    raise ModelError(f"there is no operator for torch's symbolic function {name}")


def _folded(b: Builder, op: str, operands: list[Expr], dtype: str) -> Expr:
    first, *others = (b.cast(operand, dtype) for operand in operands)
    if not others:
        return b.emit(op, first)
    return reduce(lambda x, y: b.emit(op, x, y), others, first)
