"""Makes one loop function of each fused function of the graph level."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from relax_egraph.errors import NotLowerable
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.op import Op, complete_attrs
from relax_egraph.ir.struct_info import Shape, ShapeStructInfo, TensorStructInfo
from relax_egraph.lower.legalize import LEGALIZE
from relax_egraph.passes.infra import module_pass
from relax_egraph.tir import te
from relax_egraph.tir.call_te import call_prim_func, computed
from relax_egraph.tir.inline import inline_injective
from relax_egraph.tir.stmt import PrimFunc

Value: TypeAlias = te.Tensor | tuple[Dim, ...] | list["Value"]
"""What a variable holds: a tensor, a shape, or the fields of a tuple."""


@module_pass(name="fuse_tir")
def fuse_tir(module: IRModule) -> IRModule:
    """`module` with a `PrimFunc` for each function of attribute ``primitive``.

    Its parameters are the function's and then the results; its calls become ``R.call_tir``.
    Raises `NotLowerable` for a primitive function that is more than operators on tensors of
    known shape and dtype.
    """
    fused = {
        name: fused_prim_func(name, function)
        for name, function in module.relax_functions()
        if function.attrs.get("primitive")
    }
    functions: dict[str, BaseFunc] = {}
    for name, function in module.functions.items():
        if name in fused:
            functions[name] = fused[name]
        elif isinstance(function, Function):
            new = _Caller(module, fused).visit_expr(function)
            assert isinstance(new, Function)
            functions[name] = new
        else:
            functions[name] = function
    return IRModule(functions)


def fused_prim_func(name: str, function: Function) -> PrimFunc:
    """The loop function of one primitive function, with as few nests as inlining leaves.

    `name` is what errors call it.
    """
    fuser = _Fuser(name)
    inputs: list[te.Tensor] = []
    for param in function.params:
        value = fuser.param(param)
        if isinstance(value, te.Tensor):
            inputs.append(value)
    for block in function.body.blocks:
        for binding in block.bindings:
            if not isinstance(binding, VarBinding):
                raise NotLowerable(f"{name}: {binding.var.name} is checked at run time")
            fuser.values[binding.var] = fuser.value(binding.value)
    outputs = computed(fuser.outputs(function.body.body))
    attrs = {key: value for key, value in function.attrs.items() if key != "primitive"}
    return te.create_prim_func(*inputs, *inline_injective(outputs), attrs=attrs)


@dataclass(slots=True)
class _Fuser:
    """Evaluates the body of a primitive function to tensor expressions."""

    name: str
    values: dict[Var, Value] = field(default_factory=dict[Var, Value])

    def param(self, param: Var) -> Value:
        info = param.struct_info
        if isinstance(info, ShapeStructInfo) and info.values is not None:
            self.values[param] = info.values
        elif isinstance(info, TensorStructInfo) and info.dims is not None and info.dtype:
            self.values[param] = te.placeholder(info.dims, info.dtype, param.name)
        else:
            raise NotLowerable(
                f"{self.name}: parameter {param.name} is {info}, "
                "needs a tensor of known shape and dtype"
            )
        return self.values[param]

    def value(self, expr: Expr) -> Value:
        match expr:
            case Var():
                return self.values[expr]
            case ShapeExpr(values=values):
                return values
            case Tuple(fields=fields):
                return [self.value(f) for f in fields]
            case TupleGetItem(tuple_value=inner, index=index):
                fields = self.value(inner)
                assert isinstance(fields, list)
                return fields[index]
            case Constant():
                return self.scalar(expr)
            case Call(op=Op() as op) if not op.intrinsic:
                return self.call(expr, op)
            case _:
                raise NotLowerable(f"{self.name}: {_described(expr)} cannot be fused")

    def scalar(self, constant: Constant) -> te.Tensor:
        if constant.data.size != 1:
            raise NotLowerable(
                f"{self.name}: a constant {constant.struct_info}, needs a scalar or a parameter"
            )
        value = te.const(constant.data.item(), constant.data.dtype.name)
        return te.compute(constant.data.shape, lambda *_: value, "const")

    def call(self, call: Call, op: Op) -> Value:
        operands = [self.value(a) for a in call.args]
        if op.name == "shape_of" and isinstance(operands[0], te.Tensor):
            return operands[0].shape
        if op.name not in LEGALIZE:
            raise NotLowerable(f"{self.name}: {op} cannot be fused")
        try:
            return LEGALIZE[op.name](*operands, **complete_attrs(op, call.attrs))
        except NotLowerable as problem:
            infos = ", ".join(str(a.struct_info) for a in call.args)
            raise NotLowerable(f"{self.name}: {op} of {infos}: {problem}") from None

    def outputs(self, result: Expr) -> list[te.Tensor]:
        value = self.value(result)
        fields = value if isinstance(value, list) else [value]
        tensors = [f for f in fields if isinstance(f, te.Tensor)]
        if len(tensors) < len(fields) or not tensors:
            raise NotLowerable(f"{self.name}: returns {result.struct_info}, needs tensors")
        return tensors


def _described(expr: Expr) -> str:
    return f"a call of {expr.op}" if isinstance(expr, Call) else f"a {type(expr).__name__}"


class _Caller(ExprMutator):
    """Calls the fused functions in destination-passing style."""

    def __init__(self, module: IRModule, fused: Mapping[str, PrimFunc]) -> None:
        super().__init__()
        self._module = module
        self._fused = fused

    def visit_call(self, call: Call) -> Expr:
        visited = super().visit_call(call)
        if not isinstance(visited, Call) or not isinstance(visited.op, GlobalVar):
            return visited
        prim_func = self._fused.get(visited.op.name)
        if prim_func is None:
            return visited
        callee = GlobalVar(visited.op.name, prim_func.struct_info)
        tensors = [a for a in visited.args if isinstance(a.struct_info, TensorStructInfo)]
        values = _symbol_values(callee.name, self._module[callee.name], visited.args)
        return replace(call_prim_func(callee, prim_func, tensors, values), span=visited.span)


def _symbol_values(name: str, callee: BaseFunc, args: Sequence[Expr]) -> dict[str, Dim]:
    """What the callee's symbols are in the caller, told by the shapes among and of the operands.

    A symbol that is alone no dimension of a parameter must have the same name in both.
    """
    assert isinstance(callee, Function)
    values: dict[str, Dim] = {}
    pairs: list[tuple[Dim, Dim]] = []
    for param, arg in zip(callee.params, args, strict=True):
        wanted, given = _extents(param), _extents(arg)
        if wanted is not None and given is not None:
            pairs.extend(zip(wanted, given, strict=True))
    for wanted, given in pairs:
        if not isinstance(wanted, int) and wanted.is_Symbol:
            values.setdefault(dims.text(wanted), given)
    for wanted, given in pairs:
        if not dims.equal(dims.substitute(wanted, values), given):
            raise NotLowerable(
                f"call of {name}: an operand has extent {dims.text(given)}, "
                f"not proven to be {dims.text(wanted)}"
            )
    return values


def _extents(value: Expr) -> Shape | None:
    match value.struct_info:
        case TensorStructInfo(dims=known):
            return known
        case ShapeStructInfo(values=known):
            return known
        case _:
            return None
