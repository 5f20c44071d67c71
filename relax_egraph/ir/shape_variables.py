"""Shapes that are variables, in struct info: substitution and scope."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from relax_egraph.ir.expr import Expr, ShapeExpr, Var
from relax_egraph.ir.struct_info import (
    FuncStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    tensor,
)


def with_shapes(info: StructInfo, replaced: Mapping[Var, Expr]) -> StructInfo:
    """`info` with variables of shapes `replaced`; itself if it has none of them.

    A replacement that is neither a variable nor a list of dimensions makes the shape unknown.
    """
    match info:
        case TensorStructInfo(shape=Var() as shape) if shape in replaced:
            match replaced[shape]:
                case Var() as new:
                    return replace(info, shape=new)
                case ShapeExpr(values=values):
                    return tensor(values, info.dtype)
                case _:
                    return replace(info, shape=None)
        case TupleStructInfo(fields=fields) if replaced:
            new = tuple(with_shapes(f, replaced) for f in fields)
            same = all(a is b for a, b in zip(new, fields, strict=True))
            return info if same else TupleStructInfo(new)
        case _:
            return info


def outside(info: StructInfo, visible: Collection[Var]) -> StructInfo:
    """`info` outside of a scope: shapes that are variables other than `visible` are unknown."""
    match info:
        case TensorStructInfo(shape=Var() as shape) if shape not in visible:
            return replace(info, shape=None)
        case TupleStructInfo(fields=fields):
            new = tuple(outside(f, visible) for f in fields)
            same = all(a is b for a, b in zip(new, fields, strict=True))
            return info if same else TupleStructInfo(new)
        case FuncStructInfo(ret=ret):
            new_ret = outside(ret, visible)
            return info if new_ret is ret else replace(info, ret=new_ret)
        case _:
            return info
