"""Operators that run as packed functions, because their shapes are decided at run time.

``relax.run.<operator>`` takes the operands, then each attribute in order of definition: a
number as a host scalar, a string as a string, integers as a shape, floats as a tuple, and no value
as the string ``"None"``.  Operands that are left out are not passed; a number whose dtype
Python's numbers do not tell is passed as a tensor of rank 0.
"""

from collections.abc import Sequence
from typing import Any

from relax_egraph.errors import IllTyped
from relax_egraph.ir.block_builder import call_packed
from relax_egraph.ir.expr import Attr, Attrs, Call, Expr, PrimValue, ShapeExpr, StringImm, Tuple
from relax_egraph.ir.op import AttrParam, Op, complete_attrs
from relax_egraph.ir.struct_info import StructInfo

PREFIX = "relax.run."
"""What the names of the packed functions begin with."""

NO_VALUE = "None"
"""How an attribute without a value is passed."""


def run_time_call(op: Op, args: Sequence[Expr], attrs: Attrs, info: StructInfo) -> Call:
    """The call of the packed function for ``op(args, **attrs)``, whose result is `info`."""
    passed = [_passed(value) for value in complete_attrs(op, attrs).values()]
    operands = [(isinstance(a, PrimValue) and a.constant) or a for a in args]
    return call_packed(f"{PREFIX}{op.name}", (*operands, *passed), (info,), pure=True)


def run_time_attrs(op: Op, values: Sequence[Any]) -> dict[str, Attr]:
    """The attributes of `op` that the packed function got as `values`, after the operands."""
    if len(values) != len(op.attrs):
        raise IllTyped(f"{op} has {len(op.attrs)} attributes, got {len(values)} values")
    return {p.name: _received(p, v) for p, v in zip(op.attrs, values, strict=True)}


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
            return bool(value)
        case "int":
            return int(value)
        case "float":
            return float(value)
        case "str":
            return str(value)
        case "ints":
            return tuple(int(v) for v in value)
        case "int or ints":
            return tuple(int(v) for v in value) if isinstance(value, tuple) else int(value)
        case "floats":
            return tuple(float(v) for v in value)
