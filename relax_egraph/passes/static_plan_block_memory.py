"""Static memory planning: tensors of known or symbolic size share one storage."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import call
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import (
    Binding,
    BindingBlock,
    Call,
    Expr,
    ExternFunc,
    Function,
    MatchCast,
    PrimValue,
    SeqExpr,
    StringImm,
    Var,
    VarBinding,
)
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.op import OPS, Op
from relax_egraph.ir.struct_info import StructInfo, TupleStructInfo, symbols_of
from relax_egraph.ir.walk import variables_of
from relax_egraph.passes.analyses.memory_plan import MemoryPlan
from relax_egraph.passes.analyses.plan_memory import plan_memory
from relax_egraph.passes.analyses.upper_bounds import upper_bounds
from relax_egraph.passes.infra import module_pass
from relax_egraph.passes.to_non_dataflow import merged_blocks

_CHECK = ExternFunc("vm.builtin.check_upper_bound")
_NOTHING = TupleStructInfo(())

_Bytes: TypeAlias = tuple[int, Dim, tuple[Dim, ...], str]
"""A storage, an offset in it, and the size and type of the tensor there."""


@module_pass(name="static_plan_block_memory")
def static_plan_block_memory(module: IRModule) -> IRModule:
    """Let tensors with disjoint lifetimes share bytes.

        lv = R.builtin.alloc_tensor(R.shape([n, 4]), "float32")
        -->
        storage = R.memory.alloc_storage(R.prim_value(n * 64))
        lv = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([n, 4]), "float32")

    All tensors that do not escape lie in one storage, at the offsets of `plan_memory`; tensors
    whose symbols a ``match_cast`` binds lie in a second one, allocated after it.  A tensor that
    escapes has its own storage, which it shares with the tensors that it replaces.  A tensor with
    the place, shape and dtype of an earlier one is bound to that one.  Upper bounds of symbols,
    if the function declares them, are checked where the symbols are bound.

    Raises `IllFormed` for a malformed attribute of upper bounds.
    """
    plans = plan_memory(module)
    functions: dict[str, BaseFunc] = dict(module.functions)
    for name, function in module.relax_functions():
        bounds = upper_bounds(name, function)
        functions[name] = _Rewriter(name, plans[name], bounds).rewrite(function)
    return replace(module, functions=functions)


class _Rewriter(ExprMutator):
    """Rewrites one function by its plan; `_bound` are the allocated tensors by place."""

    def __init__(self, name: str, plan: MemoryPlan, bounds: Mapping[str, int]) -> None:
        super().__init__()
        self._name = name
        self._tensors = {t.var: t for t in plan.tensors}
        self._before: dict[Var, list[int]] = {}
        for number, storage in enumerate(plan.storages):
            self._before.setdefault(storage.before, []).append(number)
        self._sizes = [s.size for s in plan.storages]
        self._storages: dict[int, Var] = {}
        self._bound: dict[_Bytes, Var] = {}
        self._unchecked = dict(bounds)

    def rewrite(self, function: Function) -> Function:
        """The whole function, with checks of its parameters first."""
        self._names |= {v.name for v in variables_of(function)}
        checks = BindingBlock(
            tuple(
                VarBinding(Var(self._fresh("_"), _NOTHING), check)
                for p in function.params
                for check in self._checks(f"parameter {p.name}", p.struct_info)
            )
        )
        changed = self.visit_expr(function)
        assert isinstance(changed, Function)
        if checks.bindings:
            seq = SeqExpr((checks, *changed.body.blocks), changed.body.body)
            changed = replace(changed, body=merged_blocks(seq), is_pure=False)
        return replace(changed, ret_struct_info=function.ret_struct_info)

    def visit_seq_expr(self, seq: SeqExpr) -> Expr:
        bound, unchecked = dict(self._bound), dict(self._unchecked)
        visited = super().visit_seq_expr(seq)
        self._bound, self._unchecked = bound, unchecked
        return visited

    def visit_binding(self, binding: Binding) -> None:
        for number in self._before.get(binding.var, ()):
            size = call("memory.alloc_storage", PrimValue(self._sizes[number]))
            self._storages[number] = self.emit(size, "storage")
        super().visit_binding(binding)
        if binding.var.struct_info != _NOTHING:
            what = "match_cast" if isinstance(binding, MatchCast) else "result"
            for check in self._checks(f"{what} {binding.var.name}", binding.var.struct_info):
                self.emit(check, "_")

    def visit_var_binding(self, binding: VarBinding) -> None:
        tensor = self._tensors.get(binding.var)
        match binding.value:
            case Call(op=Op(name="builtin.alloc_tensor"), args=[shape, dtype]) if tensor:
                key = (tensor.storage, tensor.offset, tensor.shape, tensor.dtype)
                existing = self._bound.get(key)
                if existing is None:
                    storage, offset = self._storages[tensor.storage], PrimValue(tensor.offset)
                    value = call("memory.alloc_tensor", storage, offset, shape, dtype)
                else:
                    value = existing
                self._bound[key] = binding.var
                self.emit_binding(VarBinding(binding.var, value))
            case _:
                super().visit_var_binding(binding)

    def _checks(self, where: str, info: StructInfo) -> Iterator[Call]:
        """Checks of the symbols in `info` that have a bound and are unchecked so far."""
        for symbol in sorted(symbols_of(info) & self._unchecked.keys()):
            bound = PrimValue(self._unchecked.pop(symbol))
            message = StringImm(f"{self._name}: {symbol} of {where}")
            args = (_CHECK, PrimValue(dims.symbol(symbol)), bound, message)
            yield Call(OPS["call_packed"], args, {}, (_NOTHING,), _NOTHING)
