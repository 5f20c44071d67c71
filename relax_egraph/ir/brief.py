"""Any part of a program in one line, for messages; the script package prints whole programs."""

import dataclasses
from typing import Any

import numpy as np
import sympy

from relax_egraph.ir import dims
from relax_egraph.ir.expr import (
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    ExternFunc,
    Function,
    GlobalVar,
    If,
    MatchCast,
    PrimValue,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    TensorStructInfo,
    TupleStructInfo,
)

_WIDTH = 160
_SHOWN_ELEMENTS = 8

_INFOS = (
    TensorStructInfo,
    ShapeStructInfo,
    TupleStructInfo,
    PrimStructInfo,
    ObjectStructInfo,
    FuncStructInfo,
)


def brief(part: object) -> str:
    """`part` in one line, in the syntax of scripts if it has one; a long line is truncated."""
    text = _text(part)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 2]} …"


def _text(part: Any) -> str:
    match part:
        case None:
            return "nothing"
        case Var():
            return f"{part.name}: {part.struct_info}"
        case _ if isinstance(part, _INFOS):
            return str(part)
        case Call(op=op, args=args, attrs=attrs):
            operands = [_operand(a) for a in args] + [f"{k}={v!r}" for k, v in attrs.items()]
            operands += [f"sinfo={i}" for i in part.sinfo_args]
            return f"{_operand(op)}({', '.join(operands)})"
        case VarBinding(var=var, value=value):
            return f"{var.name} = {_text(value)}"
        case MatchCast(var=var, value=value, struct_info=info):
            return f"{var.name} = R.match_cast({_operand(value)}, {info})"
        case DataflowBlock(bindings=bindings):
            return f"a dataflow block of {len(bindings)} bindings"
        case BindingBlock(bindings=bindings):
            return f"a block of {len(bindings)} bindings"
        case If(cond=cond):
            return f"if {_operand(cond)}: …"
        case Function():
            return f"a function, {part.struct_info}"
        case _:
            return _operand(part)


def _operand(part: Any) -> str:
    match part:
        case Var(name=name):
            return name
        case Op():
            return str(part)
        case GlobalVar(name=name):
            return f"cls.{name}"
        case ExternFunc(name=name) | StringImm(value=name):
            return f'"{name}"'
        case Constant(data=data):
            shown = f"{data.tolist()}" if data.size <= _SHOWN_ELEMENTS else f"{data.shape} …"
            return f'R.const({shown}, "{data.dtype.name}")'
        case ShapeExpr(values=values):
            return f"R.shape([{', '.join(map(dims.text, values))}])"
        case PrimValue(value=value):
            return f"R.prim_value({_text(value)})"
        case Tuple(fields=fields):
            return _listed(fields)
        case TupleGetItem(tuple_value=inner, index=index):
            return f"{_operand(inner)}[{index}]"
        case sympy.Expr():
            return _dim(part)
        case tuple():
            return _listed(part)
        case np.ndarray() | str() | int() | float():
            return repr(part)
        case _ if dataclasses.is_dataclass(part):
            return _generic(part)
        case _:
            return _text(part) if isinstance(part, Call | If | Function) else repr(part)


def _listed(parts: tuple[Any, ...]) -> str:
    return f"({', '.join(map(_operand, parts))}{',' * (len(parts) == 1)})"


def _dim(dim: sympy.Expr) -> str:
    try:
        return dims.text(dim)
    except ValueError:
        return str(dim)


def _generic(part: Any) -> str:
    """A node of another layer: a variable by its name, else its kind and fields."""
    if type(part).__eq__ is object.__eq__ and hasattr(part, "name"):
        return part.name
    fields = [_operand(getattr(part, f.name)) for f in dataclasses.fields(part)]
    return f"{type(part).__name__}({', '.join(fields)})"
