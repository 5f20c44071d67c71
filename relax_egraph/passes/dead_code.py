"""Bindings and functions that nothing needs are dropped."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from relax_egraph.ir.call_rules import is_pure_in
from relax_egraph.ir.expr import (
    Binding,
    Block,
    Call,
    Expr,
    Function,
    GlobalVar,
    If,
    MatchCast,
    SeqExpr,
    Var,
)
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from relax_egraph.ir.walk import bindings_of, children, free_vars, post_order_visit
from relax_egraph.passes.infra import module_pass


@module_pass(name="remove_all_unused", opt_level=1)
def remove_all_unused(module: IRModule) -> IRModule:
    """Drop bindings whose variable is not used, and private functions that nothing public reaches.

    What has effects stays, and so does a ``match_cast``: it is a check, and binds symbols.
    One sweep from the last binding to the first reaches the fixpoint, as uses come after
    definitions; functions are dropped after it, so that a call that is dropped keeps nothing.
    """
    functions: dict[str, BaseFunc] = dict(module.functions)
    for name, function in module.relax_functions():
        functions[name] = _Sweep(module).function(function)
    kept = {name: f for name, f in functions.items() if name in _reachable(functions)}
    if len(kept) == len(functions) and all(kept[n] is f for n, f in module.functions.items()):
        return module
    return replace(module, functions=kept)


@dataclass(frozen=True, slots=True)
class _Sweep:
    """Prunes sequences from their end; returns the same object where nothing is dropped."""

    module: IRModule

    def function(self, function: Function) -> Function:
        body = self.sequence(function.body)
        return function if body is function.body else replace(function, body=body)

    def sequence(self, seq: SeqExpr) -> SeqExpr:
        live = set(free_vars(seq.body))
        blocks: list[Block] = []
        for block in reversed(seq.blocks):
            bindings = tuple(reversed(list(self.kept(block, live))))
            if bindings == block.bindings:  # bindings compare by identity
                blocks.append(block)
            elif bindings:
                blocks.append(replace(block, bindings=bindings))
        unchanged = tuple(reversed(blocks)) == seq.blocks
        return seq if unchanged else SeqExpr(tuple(reversed(blocks)), seq.body)

    def kept(self, block: Block, live: set[Var]) -> Iterator[Binding]:
        """The bindings that stay, from the last; what they use is added to `live`."""
        for binding in reversed(block.bindings):
            if binding.var not in live and self.is_droppable(binding):
                continue
            value = self.pruned(binding.value)
            live |= {*free_vars(value), *_variables_of_info(binding.var.struct_info)}
            if isinstance(binding, MatchCast):
                live |= _variables_of_info(binding.struct_info)
            yield binding if value is binding.value else replace(binding, value=value)

    def is_droppable(self, binding: Binding) -> bool:
        return not isinstance(binding, MatchCast) and self.is_pure(binding.value)

    def is_pure(self, value: Expr) -> bool:
        """Whether computing `value` has no effects; making a function never has."""
        if isinstance(value, Function):
            return True
        if isinstance(value, Call) and not is_pure_in(self.module, value):
            return False
        if isinstance(value, SeqExpr) and any(isinstance(b, MatchCast) for b in bindings_of(value)):
            return False
        return all(map(self.is_pure, children(value)))

    def pruned(self, value: Expr) -> Expr:
        match value:
            case If(true_branch=true, false_branch=false):
                new_true, new_false = self.sequence(true), self.sequence(false)
                if new_true is true and new_false is false:
                    return value
                return replace(value, true_branch=new_true, false_branch=new_false)
            case Function():
                return self.function(value)
            case _:
                return value


def _variables_of_info(info: StructInfo) -> set[Var]:
    """The variables that hold a shape which `info` mentions."""
    if isinstance(info, TensorStructInfo) and isinstance(info.shape, Var):
        return {info.shape}
    if isinstance(info, TupleStructInfo):
        return set[Var]().union(*map(_variables_of_info, info.fields))
    return set()


def _reachable(functions: dict[str, BaseFunc]) -> set[str]:
    """The names of the public functions and of all that they call, directly or not."""
    found: set[str] = set()
    waiting = [name for name, f in functions.items() if not f.attrs.get("private")]
    while waiting:
        name = waiting.pop()
        if name in found or name not in functions:
            continue
        found.add(name)
        function = functions[name]
        if isinstance(function, Function):
            post_order_visit(
                function, lambda e: waiting.append(e.name) if isinstance(e, GlobalVar) else None
            )
    return found
