"""Operators that run as packed functions, because shapes or attributes are unknown before.

``relax.run.<operator>`` takes the operands, then each attribute in order of definition: a
number as a host scalar, a string as a string, integers as a shape, floats as a tuple, and no value
as the string ``"None"``; an attribute that is itself computed at run time as a tensor.  Omitted
operands are not passed; a number whose dtype is not that of Python's numbers is passed as a tensor
of rank 0.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from relax_egraph.errors import IllTyped, RunError
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.block_builder import call_packed
from relax_egraph.ir.expr import (
    Attr,
    Call,
    Expr,
    ExternFunc,
    PrimValue,
    ShapeExpr,
    StringImm,
    Tuple,
)
from relax_egraph.ir.matching import describe
from relax_egraph.ir.op import OPS, AttrParam, Op, complete_attrs
from relax_egraph.ir.operators import find
from relax_egraph.ir.own import Packed
from relax_egraph.ir.struct_info import StructInfo

PREFIX = "relax.run."
"""The prefix of the names of the packed functions."""

NO_VALUE = "None"
"""Stands for an attribute without a value."""


def run_time_call(
    op: Op, args: Sequence[Expr], attrs: Mapping[str, Attr | Expr], info: StructInfo
) -> Call:
    """The call of the packed function for ``op(args, **attrs)``, whose result is `info`.

    An attribute that is an expression is a tensor: of rank 0 for a number, of rank 1 for several.
    """
    late = {name: value for name, value in attrs.items() if isinstance(value, Expr)}
    early = replace(op, attrs=tuple(a for a in op.attrs if a.name not in late))
    known = complete_attrs(early, {n: v for n, v in attrs.items() if not isinstance(v, Expr)})
    passed = [late.get(a.name) or _passed(known[a.name]) for a in op.attrs]
    return call_packed(f"{PREFIX}{op.name}", (*_operands(args), *passed), (info,), pure=True)


def packed_call(
    packed: Packed, op: Op, args: Sequence[Expr], attrs: Mapping[str, Attr], info: StructInfo
) -> Call:
    """The call of the user's function for ``op(args, **attrs)``: it takes operands as above."""
    passed = map(_passed, complete_attrs(op, attrs).values())
    operands = (*_operands(args), *passed)
    if not packed.into_results:
        return call_packed(packed.name, operands, (info,), pure=True)
    callee = OPS["call_dps_packed"]
    return Call(callee, (ExternFunc(packed.name), Tuple(operands)), {}, (info,), info)


def _operands(args: Sequence[Expr]) -> list[Expr]:
    return [(isinstance(a, PrimValue) and a.constant) or a for a in args]


def at_run_time(name: str) -> Callable[..., Any] | None:
    """The packed function `name` of an operator, which calls its reference; else ``None``."""
    op = find(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None
    if op is None:
        return None

    def run(*args: Any) -> Any:
        count = len(args) - len(op.attrs)
        if not op.required <= count <= len(op.operands):
            most = len(op.operands) + len(op.attrs)
            raise IllTyped(f"{op} takes {most} operands and attributes at most, got {len(args)}")
        return apply_op(op, args[:count], run_time_attrs(op, args[count:]))

    return run


def run_time_attrs(op: Op, values: Sequence[Any]) -> dict[str, Attr]:
    """The attributes of `op` from the `values` that follow the operands in a packed call.

    Raises `IllTyped` for a wrong number of values, and `RunError` for an invalid one.
    """
    if len(values) != len(op.attrs):
        raise IllTyped(f"{op} has {len(op.attrs)} attributes, got {len(values)} values")
    attrs: dict[str, Attr] = {}
    for param, value in zip(op.attrs, values, strict=True):
        try:
            attrs[param.name] = _received(param, value)
        except (ArithmeticError, TypeError, ValueError):
            message = f"{op}: {param.name} is {describe(value)}, needs {param.kind}"
            raise RunError(message) from None
    return attrs


def _passed(value: Attr) -> Expr:
    match value:
        case None:
            return StringImm(NO_VALUE)
        case bool():
            return PrimValue(value, "bool")
        case int():
            return PrimValue(value, "int64")
        case float():
            return PrimValue(value, "float64")
        case str():
            return StringImm(value)
        case tuple() if any(isinstance(v, float) for v in value):
            return Tuple(tuple(PrimValue(float(v), "float64") for v in value))
        case tuple():
            return ShapeExpr(tuple(int(v) for v in value))


def _received(param: AttrParam, value: Any) -> Attr:
    if param.optional and isinstance(value, str) and value == NO_VALUE:
        return None
    match param.kind:
        case "bool":
            return bool(_number(value))
        case "int":
            return int(_number(value))
        case "float":
            return float(_number(value))
        case "str":
            return str(value)
        case "ints":
            return tuple(int(v) for v in value)
        case "int or ints":
            several = np.ndim(value) == 1
            return tuple(int(v) for v in value) if several else int(_number(value))
        case "floats":
            return tuple(float(v) for v in value)


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, np.ndarray) else value
