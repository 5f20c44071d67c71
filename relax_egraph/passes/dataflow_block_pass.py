"""Passes that rewrite one dataflow block at a time."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from relax_egraph.errors import IllFormed
from relax_egraph.ir.expr import Block, DataflowBlock, DataflowVar, Function, Var
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.names import unused
from relax_egraph.ir.substitution import Substitution
from relax_egraph.ir.walk import variables_of
from relax_egraph.passes.analyses.visibility import used_outside
from relax_egraph.passes.infra import Pass, PassContext

RewriteBlock: TypeAlias = Callable[[DataflowBlock, IRModule, PassContext], DataflowBlock]
"""Rewrites a block; takes the block, the module before the pass, and the context."""


def dataflowblock_pass(
    *, name: str, opt_level: int = 0, required: Sequence[Pass] = ()
) -> Callable[[RewriteBlock], Pass]:
    """Decorator: make a pass of a function that rewrites one dataflow block.

    The function must keep the outputs of the block; new variables get names that are unique in
    their function.  An empty result drops the block, and a module whose blocks did not change is
    returned itself.  The pass raises `IllFormed` if a variable that is read outside of the block
    is no longer bound in it.
    """

    def decorate(rewrite: RewriteBlock) -> Pass:
        def run(module: IRModule) -> IRModule:
            functions: dict[str, BaseFunc] = dict(module.functions)
            for function_name, function in module.relax_functions():
                blocks = _Blocks(name, function_name, function, module, rewrite)
                functions[function_name] = blocks.rewritten()
            changed = any(functions[n] is not f for n, f in module.functions.items())
            return replace(module, functions=functions) if changed else module

        return Pass(name, opt_level, run, tuple(required))

    return decorate


class _Blocks(ExprMutator):
    """Rewrites the dataflow blocks of one function."""

    def __init__(
        self, name: str, at: str, function: Function, module: IRModule, rewrite: RewriteBlock
    ) -> None:
        super().__init__()
        self._pass = name
        self._at = at
        self._function = function
        self._module = module
        self._rewrite = rewrite
        self._before = set(variables_of(function))

    def rewritten(self) -> Function:
        """The function with its blocks rewritten, and names that differ."""
        changed = self.visit_expr(self._function)
        assert isinstance(changed, Function)
        if changed is self._function:
            return changed
        return self._with_own_names(changed)

    def visit_dataflow_block(self, block: DataflowBlock) -> Block:
        visited = super().visit_dataflow_block(block)
        assert isinstance(visited, DataflowBlock)
        new = self._rewrite(visited, self._module, PassContext.current())
        bound = {b.var for b in new.bindings}
        for var in _ordered(used_outside(self._function, [block])):
            if var not in bound:
                raise IllFormed(
                    f"pass {self._pass}: {self._at}: a dataflow block no longer binds {var.name}, "
                    "which is read outside of it"
                )
        return new

    def _with_own_names(self, function: Function) -> Function:
        defined = variables_of(function)
        names = {v.name for v in defined if v in self._before}
        renamed = {
            v: replace(v, name=unused(v.name, names))
            for v in defined
            if v not in self._before and v.name in names
        }
        if not renamed:
            return function
        return Substitution({}, definitions=renamed).function(function)


def _ordered(variables: Iterable[Var]) -> list[Var]:
    return sorted((v for v in variables if not isinstance(v, DataflowVar)), key=lambda v: v.name)
