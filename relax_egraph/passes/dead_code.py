"""Dead code elimination: drops unused bindings and unreachable functions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from relax_egraph.errors import IllFormed
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
from relax_egraph.ir.occurrences import shape_variables_of
from relax_egraph.ir.refusals import Refusals
from relax_egraph.ir.walk import children, free_vars, post_order_visit
from relax_egraph.passes.analyses.visibility import without_unread_outputs
from relax_egraph.passes.infra import Pass, module_pass
from relax_egraph.passes.to_non_dataflow import merged_blocks


def dead_code_elimination(entry_functions: Sequence[str] = ()) -> Pass:
    """`remove_all_unused`; also, outputs that only their own dataflow block reads become local.

    With `entry_functions`, every function that they do not reach is dropped, public or not.
    Raises `IllFormed` if the module lacks one of them.
    """

    def run(module: IRModule) -> IRModule:
        for name in entry_functions:
            if name not in module:
                known = ", ".join(sorted(module.functions)) or "none"
                raise IllFormed(f"dead_code_elimination: no function {name!r}; there are: {known}")
        pruned = _pruned(module, list(entry_functions) or _public(module))
        functions = {
            name: without_unread_outputs(f) if isinstance(f, Function) else f
            for name, f in pruned.functions.items()
        }
        changed = any(functions[n] is not f for n, f in pruned.functions.items())
        return replace(pruned, functions=functions) if changed else pruned

    return Pass("dead_code_elimination", 1, run)


@module_pass(name="remove_all_unused", opt_level=1)
def remove_all_unused(module: IRModule) -> IRModule:
    """Drop bindings of unused variables, and private functions that no public one reaches.

    Calls with effects stay, and so do bindings that may fail: a ``match_cast``, or an operator
    whose operands are not proven to fit together.
    Consecutive binding blocks are merged, as in a script.
    One sweep from the last binding to the first reaches the fixpoint, as uses come after
    definitions; functions are dropped after it, so that a call that is dropped keeps nothing.
    """
    return _pruned(module, _public(module))


def _public(module: IRModule) -> list[str]:
    return [name for name, f in module.functions.items() if not f.attrs.get("private")]


def _pruned(module: IRModule, roots: Sequence[str]) -> IRModule:
    functions: dict[str, BaseFunc] = dict(module.functions)
    sweep = _Sweep(module, Refusals(module))
    for name, function in module.relax_functions():
        functions[name] = sweep.function(function)
    needed = reachable(functions, roots)
    kept = {name: f for name, f in functions.items() if name in needed}
    if len(kept) == len(functions) and all(kept[n] is f for n, f in module.functions.items()):
        return module
    return replace(module, functions=kept)


@dataclass(frozen=True, slots=True)
class _Sweep:
    """Prunes sequences from their end; returns the same object where nothing is dropped."""

    module: IRModule
    refusals: Refusals

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
        return merged_blocks(seq if unchanged else SeqExpr(tuple(reversed(blocks)), seq.body))

    def kept(self, block: Block, live: set[Var]) -> Iterator[Binding]:
        """The bindings that stay, from the last; adds the variables that they use to `live`."""
        for binding in reversed(block.bindings):
            if binding.var not in live and self.is_droppable(binding):
                continue
            value = self.pruned(binding.value)
            live |= {*free_vars(value), *shape_variables_of(binding.var.struct_info)}
            if isinstance(binding, MatchCast):
                live |= shape_variables_of(binding.struct_info)
            yield binding if value is binding.value else replace(binding, value=value)

    def is_droppable(self, binding: Binding) -> bool:
        return self.is_pure(binding.value) and not self.refusals.binding(binding)

    def is_pure(self, value: Expr) -> bool:
        """Whether computing `value` has no effects; a function value never has."""
        if isinstance(value, Function):
            return True
        if isinstance(value, Call) and not is_pure_in(self.module, value):
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


def reachable(functions: Mapping[str, BaseFunc], roots: Iterable[str]) -> set[str]:
    """The names `roots`, and the names of all functions that they mention, directly or not."""
    names: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name in names or name not in functions:
            continue
        names.add(name)
        function = functions[name]
        if isinstance(function, Function):
            waiting += callees(function)
    return names


def callees(function: Function) -> set[str]:
    """The names of the functions of the module that `function` mentions."""
    names: set[str] = set()
    post_order_visit(function, lambda e: names.add(e.name) if isinstance(e, GlobalVar) else None)
    return names
