"""Rewrites ``R.call_tir`` and ``R.call_dps_packed`` to explicit allocations and calls."""

from collections.abc import Sequence
from dataclasses import replace

from relax_egraph.errors import IllFormed, IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.agreement import implies
from relax_egraph.ir.block_builder import call
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import (
    Block,
    Call,
    DataflowBlock,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    MatchCast,
    PrimValue,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.op import OPS
from relax_egraph.ir.ops.call import claims_besides_operands, inplace_indices
from relax_egraph.ir.struct_info import (
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    tensor,
)
from relax_egraph.passes.infra import module_pass
from relax_egraph.passes.symbol_binding import bind_symbols
from relax_egraph.tir.expr import Buffer
from relax_egraph.tir.stmt import PrimFunc

_NOTHING = TupleStructInfo(())


@module_pass(name="call_tir_rewrite")
def call_tir_rewrite(module: IRModule) -> IRModule:
    """Make the allocation of results explicit: destination-passing style.

        lv = R.call_tir(cls.f, (a, b), out_sinfo=R.Tensor((n, 4), "float32"))
        -->
        lv = R.builtin.alloc_tensor(R.shape([n, 4]), "float32")
        cls.f(a, b, lv, n)

    Several results are allocated as ``lv_0``, ``lv_1`` …, and their tuple replaces `lv`.  A result
    in place of ``R.call_tir_inplace`` is the operand, or a copy of a constant.
    The trailing arguments are the `symbols` of the loop function, in the caller's dimensions.
    Where a shape is not proven to match the loop function, an ``R.match_cast`` checks it before
    the call.  Functions with such calls are no longer pure.

    Raises `IllTyped` if operands do not match the loop function, and `IllFormed` for a dataflow
    block: `to_non_dataflow` runs before.
    """
    functions: dict[str, BaseFunc] = dict(module.functions)
    for name, function in module.relax_functions():
        functions[name] = _Rewriter(module, name).rewrite(function)
    if all(functions[name] is function for name, function in module.functions.items()):
        return module
    for name, function in functions.items():
        if isinstance(function, Function):
            functions[name] = replace(function, is_pure=False)
    return replace(module, functions=functions)


class _Rewriter(ExprMutator):
    def __init__(self, module: IRModule, name: str) -> None:
        super().__init__()
        self._module = module
        self._name = name

    def rewrite(self, function: Function) -> Function:
        changed = self.visit_expr(function)
        assert isinstance(changed, Function)
        if changed is function:
            return function
        return replace(changed, ret_struct_info=function.ret_struct_info)

    def visit_dataflow_block(self, block: DataflowBlock) -> Block:
        raise IllFormed(f"function {self._name!r} has a dataflow block: run to_non_dataflow first")

    def visit_tuple_getitem(self, value: TupleGetItem) -> Expr:
        visited = super().visit_tuple_getitem(value)
        match visited:
            case TupleGetItem(tuple_value=Tuple(fields=fields), index=index):
                return fields[index]
            case _:
                return visited

    def visit_var_binding(self, binding: VarBinding) -> None:
        match binding.value:
            case Call(op=op, args=[GlobalVar() as callee, Tuple(fields=args), *rest]) if op in (
                OPS["call_tir"],
                OPS["call_tir_inplace"],
            ):
                operands = tuple(map(self.visit_expr, args))
                tir_vars = rest[0].values if rest and isinstance(rest[0], ShapeExpr) else ()
                places = inplace_indices(binding.value) if op is OPS["call_tir_inplace"] else ()
                out = self._call_tir(callee, operands, binding.var, binding.value, tir_vars, places)
            case Call(op=op, args=[ExternFunc() as callee, Tuple(fields=args)]) if (
                op is OPS["call_dps_packed"]
            ):
                operands = tuple(map(self.visit_expr, args))
                out = self._call_dps_packed(callee, operands, binding.var, binding.value)
            case Call(op=op, args=[ExternFunc() as callee, *args]) if (
                op is OPS["call_inplace_packed"]
            ):
                operands = tuple(map(self.visit_expr, args))
                out = self._call_inplace_packed(callee, operands, binding.var, binding.value)
            case _:
                super().visit_var_binding(binding)
                return
        self.replace_var(binding.var, out)

    def _call_dps_packed(
        self, callee: ExternFunc, operands: tuple[Expr, ...], var: Var, value: Call
    ) -> Expr:
        names, infos = self._results(var, value)
        outputs = tuple(map(self._allocated, names, infos))
        args = (callee, *operands, *outputs)
        self.emit(Call(OPS["call_packed"], args, {}, (_NOTHING,), _NOTHING, value.span), "_")
        return _whole(value, outputs)

    def _call_inplace_packed(
        self, callee: ExternFunc, operands: tuple[Expr, ...], var: Var, value: Call
    ) -> Expr:
        names, infos = self._results(var, value)
        places, arrays = inplace_indices(value), list(operands)
        for name, info, place in zip(names, infos, places, strict=True):
            if place >= 0 and isinstance(arrays[place].struct_info, TensorStructInfo):
                arrays[place] = self._claimed(name, self._writable(name, arrays[place]), info)
        info, args = claims_besides_operands(value), (callee, *arrays)
        result = self.emit(Call(OPS["call_packed"], args, {}, (info,), info, value.span), var.name)
        results = [
            arrays[place] if place >= 0 else self.emit(TupleGetItem(result, i), name)
            for i, (name, place) in enumerate(zip(names, places, strict=True))
        ]
        return _whole(value, tuple(results))

    def _claimed(self, name: str, array: Expr, claim: StructInfo) -> Expr:
        """`array`, with a check at run time unless `claim` is proven."""
        if implies(array.struct_info, claim):
            return array
        cast = Var(self._fresh(name), claim)
        self.emit_binding(MatchCast(cast, array, claim))
        return cast

    def _call_tir(
        self,
        callee: GlobalVar,
        operands: tuple[Expr, ...],
        var: Var,
        value: Call,
        tir_vars: tuple[Dim, ...],
        inplace: tuple[int, ...],
    ) -> Expr:
        what, function = f"{self._name}: R.call_tir of {callee.name}", self._module[callee.name]
        if not isinstance(function, PrimFunc):
            raise IllTyped(f"{what}, which is not a loop function")
        infos = [_tensor_info(f"{what}: operand {i}", a) for i, a in enumerate(operands)]
        names, results = self._results(var, value)
        places = inplace or (-1,) * len(results)
        outs = {n: o for n, o, p in zip(names, results, places, strict=True) if p < 0}
        infos += [o for o in outs.values() if isinstance(o, TensorStructInfo)]
        if len(infos) != len(function.params) or len(outs) != function.num_outputs:
            raise IllTyped(
                f"{what}: {len(operands)} operands and {len(outs)} results, needs "
                f"{len(function.inputs)} and {function.num_outputs}"
            )
        values = bind_symbols(what, function, infos, tir_vars)
        outputs = tuple(map(self._allocated, outs.keys(), outs.values()))
        arrays = [
            self._fitted(what, buffer, array, values)
            for buffer, array in zip(function.params, (*operands, *outputs), strict=True)
        ]
        for name, place in zip(names, places, strict=True):
            if place >= 0:
                arrays[place] = self._writable(name, arrays[place])
        symbols = [PrimValue(values[s]) for s in function.symbols]
        kernel = GlobalVar(callee.name, function.struct_info)
        self.emit(Call(kernel, (*arrays, *symbols), {}, (_NOTHING,), _NOTHING, value.span), "_")
        allocations = iter(outputs)
        fields = tuple(arrays[place] if place >= 0 else next(allocations) for place in places)
        return _whole(value, fields)

    def _results(self, var: Var, value: Call) -> tuple[Sequence[str], Sequence[StructInfo]]:
        """The name and the struct info of each result."""
        match value.sinfo_args[0]:
            case TupleStructInfo(fields=fields):
                return [self._fresh(f"{var.name}_{i}") for i in range(len(fields))], fields
            case info:
                return [var.name], [info]

    def _allocated(self, name: str, info: StructInfo) -> Expr:
        assert isinstance(info, TensorStructInfo)
        assert info.shape is not None
        if info.dtype is None:
            raise IllTyped(f"{self._name}: {name} is {info}, its dtype is needed to allocate it")
        shape = self.visit_expr(info.shape)
        return self._named(name, call("builtin.alloc_tensor", shape, StringImm(info.dtype)))

    def _writable(self, name: str, array: Expr) -> Expr:
        """`array`, or a copy of it if it must not be written."""
        function, info = ExternFunc("vm.builtin.writable"), array.struct_info
        return self._named(name, Call(OPS["call_packed"], (function, array), {}, (info,), info))

    def _named(self, name: str, value: Call) -> Var:
        """Bind `value` to a variable of exactly this name, whose former variable is gone."""
        var = Var(name, value.struct_info)
        self.emit_binding(VarBinding(var, value))
        return var

    def _fitted(self, what: str, buffer: Buffer, array: Expr, values: dict[str, Dim]) -> Expr:
        """`array`, with a check at run time unless it is proven to have the shape of `buffer`."""
        needed = tuple(dims.substitute(d, values) for d in buffer.shape)
        info = array.struct_info
        assert isinstance(info, TensorStructInfo)
        if info.dtype == buffer.dtype and _proven(info.dims, needed):
            return array
        claim = tensor(needed, buffer.dtype)
        contradicts = info.ndim not in (-1, len(needed)) or (
            info.dims is not None and any(map(dims.distinct, info.dims, needed))
        )
        if contradicts or info.dtype not in (None, buffer.dtype):
            raise IllTyped(f"{what}: {buffer.name} is {info}, needs {claim}")
        name = array.name if isinstance(array, Var) else buffer.name
        cast = Var(self._fresh(name), claim)
        self.emit_binding(MatchCast(cast, array, claim))
        return cast


def _whole(value: Call, results: tuple[Expr, ...]) -> Expr:
    """The expression that replaces the call `value`, whose results are `results`."""
    return Tuple(results) if isinstance(value.sinfo_args[0], TupleStructInfo) else results[0]


def _proven(have: Sequence[Dim] | None, needed: Sequence[Dim]) -> bool:
    if have is None or len(have) != len(needed):
        return False
    return all(map(dims.equal, have, needed))


def _tensor_info(what: str, operand: Expr) -> TensorStructInfo:
    info = operand.struct_info
    if not isinstance(info, TensorStructInfo):
        raise IllTyped(f"{what} is {info}, needs a tensor")
    return info
