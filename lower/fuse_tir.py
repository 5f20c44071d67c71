"""Lowers each fused function of the graph level to one loop function."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from relax_egraph.errors import NotLowerable
from relax_egraph.ir.assumptions import assuming, parse
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import (
    Call,
    Expr,
    Function,
    GlobalVar,
)
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.op import Op, complete_attrs
from relax_egraph.ir.struct_info import Shape, ShapeStructInfo, TensorStructInfo
from relax_egraph.lower.fuse_calls import calls_loops, merged_prim_func, symbol_values
from relax_egraph.lower.fused_body import FusedBody, Value
from relax_egraph.lower.legalize import loops_of
from relax_egraph.lower.legalize.elementwise import Legalize
from relax_egraph.lower.legalize.join import joined
from relax_egraph.passes.dead_code import callees
from relax_egraph.passes.infra import module_pass
from relax_egraph.tir import te
from relax_egraph.tir.call_te import call_prim_func, computed
from relax_egraph.tir.expr import Buffer
from relax_egraph.tir.inline import inline_injective
from relax_egraph.tir.stmt import PrimFunc

_INSIDE: Mapping[str, Legalize] = {"concat": joined}
"""Operators that are lowered differently inside a larger function."""


@module_pass(name="fuse_tir")
def fuse_tir(module: IRModule) -> IRModule:
    """`module` with a `PrimFunc` for each function with the attribute ``primitive``.

    Its parameters are those of the function and then the results; calls of it become
    ``R.call_tir``.  Operators become one loop function with as few nests as inlining leaves; loop
    functions that a primitive function calls are put in sequence, and dropped if they are private
    and have no other callers.  Raises `NotLowerable` for a primitive function with anything but
    operators, and calls of loop functions, on tensors of known shape and dtype.
    """
    fused = {
        name: _prim_func(module, name, function)
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
    dropped = _merged_only(module, fused)
    return IRModule({name: f for name, f in functions.items() if name not in dropped})


def _prim_func(module: IRModule, name: str, function: Function) -> PrimFunc:
    """The loop function of a primitive function, under the conditions it was chosen under."""
    known = str(function.attrs.get("assume", ""))
    with assuming(parse(known.split(", ") if known else ())):
        if calls_loops(function):
            return merged_prim_func(module, name, function, fused_prim_func)
        return fused_prim_func(name, function)


def _merged_only(module: IRModule, fused: Collection[str]) -> set[str]:
    """The private loop functions that only the functions `fused` call."""
    merged: set[str] = set()
    still_called: set[str] = set()
    for name, function in module.relax_functions():
        (merged if name in fused else still_called).update(callees(function))
    return {
        name
        for name in merged - still_called
        if isinstance(module[name], PrimFunc) and module[name].attrs.get("private")
    }


def fused_prim_func(name: str, function: Function) -> PrimFunc:
    """The loop function of one primitive function, with as few nests as inlining leaves.

    Errors refer to it by `name`.
    """
    inputs, results = _Fuser(name).evaluate(function)
    parameters = [t for t in inputs if isinstance(t, te.Tensor)]
    outputs = computed([t for t in results if isinstance(t, te.Tensor)])
    attrs = {key: value for key, value in function.attrs.items() if key not in _DONE}
    return te.create_prim_func(*parameters, *inline_injective(outputs), attrs=attrs)


_DONE = ("primitive", "assume")
"""Attributes that loop functions do not keep."""


class _Fuser(FusedBody):
    """Evaluates the body to tensor expressions."""

    def tensor(self, name: str, shape: Shape, dtype: str) -> Buffer:
        return te.placeholder(shape, dtype, name)

    def constant(self, filled: te.Tensor) -> Buffer:
        return filled

    def call(self, call: Call) -> Value:
        op = call.op
        if not isinstance(op, Op) or op.intrinsic:
            raise NotLowerable(f"{self.name}: a call of {op} cannot be fused")
        operands = [self.value(a) for a in call.args]
        if op.name == "shape_of" and isinstance(operands[0], te.Tensor):
            return operands[0].shape
        loops = _INSIDE.get(op.name) or loops_of(op)
        if loops is None:
            raise NotLowerable(f"{self.name}: {op} cannot be fused")
        try:
            result = loops(*operands, **complete_attrs(op, call.attrs))
            if isinstance(result, PrimFunc):
                raise NotLowerable("it has a loop function of its own")
            return result if isinstance(result, te.Tensor) else list(result)
        except NotLowerable as problem:
            infos = ", ".join(str(a.struct_info) for a in call.args)
            raise NotLowerable(f"{self.name}: {op} of {infos}: {problem}") from None


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
    """The values of the callee's symbols, from the shapes among and of the operands."""
    assert isinstance(callee, Function)
    pairs: list[tuple[Dim, Dim]] = []
    for param, arg in zip(callee.params, args, strict=True):
        expected, actual = _extents(param), _extents(arg)
        if expected is not None and actual is not None:
            pairs.extend(zip(expected, actual, strict=True))
    return symbol_values(name, pairs, {})


def _extents(value: Expr) -> Shape | None:
    match value.struct_info:
        case TensorStructInfo(dims=extents):
            return extents
        case ShapeStructInfo(values=extents):
            return extents
        case _:
            return None
