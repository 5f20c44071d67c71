"""Programs in float64: the same operators, with float64 in place of every narrower float."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.expr import Attr, Call, Constant, Expr, Function, GlobalVar, PrimValue, Var
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.struct_info import (
    FuncStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)

WIDE = "float64"


def widened(module: IRModule) -> IRModule:
    """`module` with its Relax functions in float64; raises `IllTyped` if an operator refuses it."""
    return IRModule({name: _function(f) for name, f in module.functions.items()})


def wide_value(value: Any) -> Any:
    """An argument of a program, converted for the widened program."""
    if isinstance(value, tuple):
        return tuple(map(wide_value, value))
    dtype = getattr(value, "dtype", None)
    return value.astype(WIDE) if dtype is not None and is_float(dtype.name) else value


def _function(function: BaseFunc) -> BaseFunc:
    if not isinstance(function, Function):
        return function
    wide = _Widener().visit_expr(function)
    assert isinstance(wide, Function)
    return replace(wide, ret_struct_info=_info(function.ret_struct_info))


def _dtype(name: str | None) -> str | None:
    return WIDE if name is not None and is_float(name) else name


def _info(info: StructInfo) -> StructInfo:
    match info:
        case TensorStructInfo(dtype=dtype):
            return info if _dtype(dtype) == dtype else replace(info, dtype=WIDE)
        case TupleStructInfo(fields=fields):
            return replace(info, fields=tuple(map(_info, fields)))
        case FuncStructInfo(params=params, ret=ret):
            return replace(info, params=params and tuple(map(_info, params)), ret=_info(ret))
        case _:
            return info


def _attrs(attrs: Mapping[str, Attr]) -> dict[str, Attr]:
    return {k: _dtype(v) if isinstance(v, str) else v for k, v in attrs.items()}


class _Widener(ExprMutator):
    """Widens declarations, constants, and dtype attributes."""

    def visit_struct_info(self, info: StructInfo) -> StructInfo:
        wide = super().visit_struct_info(info)
        return info if _info(wide) == info else _info(wide)

    def visit_var_def(self, var: Var) -> Var:
        info = self.visit_struct_info(var.struct_info)
        return var if info is var.struct_info else replace(var, struct_info=info)

    def visit_constant(self, constant: Constant) -> Expr:
        wide = wide_value(constant.data)
        return constant if wide is constant.data else Constant(wide)

    def visit_global_var(self, function: GlobalVar) -> Expr:
        return replace(function, struct_info=_info(function.struct_info))

    def visit_prim_value(self, value: PrimValue) -> Expr:
        dtype = WIDE if is_float(value.dtype) else value.dtype
        return value if dtype == value.dtype else replace(value, dtype=dtype)

    def visit_call(self, call: Call) -> Expr:
        attrs, info = _attrs(call.attrs), _info(call.struct_info)
        wide = call if attrs == call.attrs else replace(call, attrs=attrs, struct_info=info)
        return super().visit_call(wide)
