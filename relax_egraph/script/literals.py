"""Python literals in a script: numbers, strings, lists, and tensor constants."""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from relax_egraph.errors import nearest
from relax_egraph.ir.dtypes import DTYPES, TABLE, is_float
from relax_egraph.ir.expr import Constant, FunctionAttr, FunctionAttrs, const
from relax_egraph.script.source import Source, dotted
from relax_egraph.script.spellings import DTYPE_NAMES

WRAPPERS = frozenset({"float", "bool", "int", *(f"T.{dtype}" for dtype in DTYPES)})
"""Calls that only give a literal its dtype: ``T.int64(3)``, ``float("inf")``."""


_ARITHMETIC: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


def quoted(value: str) -> str:
    """`value` as a string literal, in double quotes where that needs no escape."""
    written = repr(value)
    return f'"{written[1:-1]}"' if written[0] == "'" and '"' not in written else written


def literal_text(value: FunctionAttr) -> str:
    """The inverse of `read_attrs`: a tuple prints as a list, one of pairs as a dictionary."""
    match value:
        case ((str(), _), *_):
            return attrs_text(dict(cast(tuple[tuple[str, int], ...], value)))
        case str():
            return quoted(value)
        case float():
            return repr(value) if math.isfinite(value) else f'float("{value}")'
        case tuple():
            elements = cast(tuple[int, ...] | tuple[float, ...], value)
            return f"[{', '.join(map(literal_text, elements))}]"
        case _:
            return repr(value)


def attrs_text(attrs: FunctionAttrs) -> str:
    """Attributes of a function as a dictionary."""
    return "{" + ", ".join(f"{quoted(k)}: {literal_text(v)}" for k, v in attrs.items()) + "}"


def read_literal(source: Source, node: ast.expr) -> Any:
    """The value of a literal; lists become tuples.  Raises `ScriptError` on anything else."""
    match node:
        case ast.Constant(value=None | bool() | int() | float() | str() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = read_literal(source, operand)
            if isinstance(value, int | float):
                return -value
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            sides = [read_literal(source, left), read_literal(source, right)]
            if all(isinstance(side, int | float) for side in sides):
                with suppress(ArithmeticError):
                    return _ARITHMETIC[type(op)](*sides)
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return tuple(read_literal(source, e) for e in elements)
        case ast.Call(func=func, args=[inner], keywords=[]) if dotted(func) == "R.prim_value":
            return read_literal(source, inner)
        case ast.Call(func=func, args=[ast.Constant(value=str(dtype)), inner], keywords=[]) if (
            dotted(func) in ("T.FloatImm", "T.IntImm")
        ):
            return _converted(source, node, f"T.{dtype}", read_literal(source, inner))
        case ast.Call(func=func, args=[inner], keywords=[]) if (name := dotted(func)) in WRAPPERS:
            return _converted(source, node, name, read_literal(source, inner))
        case _:
            pass
    raise source.error(node, f"`{ast.unparse(node)}` is no literal")


def read_string(source: Source, node: ast.expr, what: str) -> str:
    """The value of a string literal; `what` names it in the message of an error."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    raise source.error(node, f"{what} is `{ast.unparse(node)}`, needs a string")


def read_dtype(source: Source, node: ast.expr) -> str:
    """The name of a dtype, one of `DTYPES`, perhaps in short: ``f32``."""
    dtype = read_string(source, node, "the dtype")
    dtype = DTYPE_NAMES.get(dtype, dtype)
    if dtype not in DTYPES:
        raise source.error(node, f'no dtype "{dtype}"', nearest(dtype, DTYPES))
    return dtype


def read_attrs(source: Source, node: ast.expr, taker: str = "func_attr") -> dict[str, FunctionAttr]:
    """The dictionary of ``func_attr``, or of another `taker`."""
    if not isinstance(node, ast.Dict):
        raise source.error(node, f"{taker} takes a dictionary, got `{ast.unparse(node)}`")
    attrs: dict[str, FunctionAttr] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            raise source.error(value, f"{taker} takes a dictionary without `**`")
        attrs[read_string(source, key, "the name of an attribute")] = _read_attr(source, value)
    return attrs


def _read_attr(source: Source, node: ast.expr) -> FunctionAttr:
    """A literal, or a dictionary of them, which becomes pairs."""
    if not isinstance(node, ast.Dict):
        return read_literal(source, node)
    pairs: dict[str, int] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            raise source.error(value, "an attribute is a dictionary without `**`")
        pairs[read_string(source, key, "a key of an attribute")] = read_literal(source, value)
    return tuple(pairs.items())


def read_const(source: Source, node: ast.Call) -> Constant:
    """``R.const(0.5, "float32")``, ``R.const([[1, 2]], "int64")``.

    ``shape=`` gives the shape of a tensor without elements.  Without a dtype, floats are
    float32 and ints int32.
    """
    by_name = dict(zip(("value", "dtype", "shape"), node.args, strict=False))
    by_name |= {k.arg or "**": k.value for k in node.keywords}
    if "value" not in by_name or by_name.keys() - {"value", "dtype", "shape"} or len(node.args) > 2:
        raise source.error(node, "R.const takes a value and a dtype")
    dtype = read_dtype(source, by_name["dtype"]) if "dtype" in by_name else None
    outer = outer_constant(by_name["value"])
    value = read_literal(source, by_name["value"]) if outer is None else outer.data
    try:
        with np.errstate(over="ignore"):
            constant = const(value, dtype)
            if "shape" in by_name:
                constant = Constant(constant.data.reshape(read_literal(source, by_name["shape"])))
    except (ValueError, TypeError, OverflowError) as problem:
        raise source.error(node, f"no tensor constant: {problem}") from None
    if constant.data.dtype.name not in DTYPES:
        raise source.error(node, f"`{ast.unparse(by_name['value'])}` is no tensor constant")
    return constant


def outer_constant(node: ast.expr) -> Constant | None:
    """The constant in the syntax tree itself: an array from around a decorated function."""
    value: object = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, Constant) else None


def const_text(data: npt.NDArray[Any]) -> str:
    """``R.const(…)`` that `read_const` reads back bit by bit (a NaN as the usual one)."""
    shape = f", shape={literal_text(data.shape)}" if data.size == 0 else ""
    value = "[]" if data.size == 0 else _nested(data)
    return f"R.const({value}, {quoted(data.dtype.name)}{shape})"


def _nested(data: npt.NDArray[Any]) -> str:
    if data.ndim == 0:
        return _scalar(cast(np.generic, data[()]))
    return f"[{', '.join(_nested(row) for row in data)}]"


def _scalar(value: np.generic) -> str:
    if not is_float(value.dtype.name):
        return repr(value.item())
    exact = float(cast(Any, value))
    if not math.isfinite(exact):
        return f'float("{exact}")'
    short = repr(float(str(value)))  # bfloat16 itself writes 1 and -0
    return short if value.dtype.type(float(short)) == value else repr(exact)


def _converted(source: Source, node: ast.expr, name: str, value: Any) -> Any:
    kinds = {"bool": bool, "float": float, "int": int}
    dtype = name.removeprefix("T.")
    kind = TABLE[dtype].kind.removeprefix("u") if dtype in TABLE else dtype
    if not isinstance(value, bool | int | float | str):
        raise source.error(node, f"`{ast.unparse(node)}` is no literal")
    try:
        return kinds[kind](value)
    except ValueError:
        raise source.error(node, f"`{ast.unparse(node)}` is no literal") from None
