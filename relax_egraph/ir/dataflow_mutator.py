"""`DataflowMutator`: rewrites dataflow blocks binding by binding, with a `BlockBuilder`."""

from dataclasses import replace

from relax_egraph.ir.block_builder import BlockBuilder
from relax_egraph.ir.expr import (
    Binding,
    Block,
    DataflowBlock,
    DataflowVar,
    Expr,
    Function,
    MatchCast,
    Var,
    VarBinding,
)
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.walk import is_leaf, variables_of


class DataflowMutator(ExprMutator):
    """A rewrite of the dataflow blocks of a module; a subclass overrides `visit_dataflow_binding`.

        class Fused(DataflowMutator):
            def visit_dataflow_binding(self, binding):
                ...
                return call("ewise_fma", a, b, c)

        module = Fused(module).transform()

    One binding may become several, by ``self.builder.emit``, and several one: `lookup_binding`
    returns what a variable is bound to; dead code elimination drops what is not read any
    more.  Functions may be added by ``self.builder.add_func``.
    """

    def __init__(self, module: IRModule) -> None:
        super().__init__()
        self.module = module
        self.builder = BlockBuilder(module)

    def transform(self) -> IRModule:
        """The module with each relax function rewritten; added functions come first."""
        functions: dict[str, BaseFunc] = dict(self.module.functions)
        for name, function in self.module.relax_functions():
            self._names = {v.name for v in variables_of(function)}
            changed = self.visit_expr(function)
            assert isinstance(changed, Function)
            if changed is not function:
                changed = replace(changed, ret_struct_info=function.ret_struct_info)
            functions[name] = changed
        added = {n: f for n, f in self.builder.get().functions.items() if n not in functions}
        if not added and all(functions[n] is f for n, f in self.module.functions.items()):
            return self.module
        return replace(self.module, functions={**added, **functions})

    def visit_dataflow_binding(self, binding: VarBinding) -> Expr:
        """The replacement of the variable of `binding`: a leaf, or a value to bind.

        The operands of ``binding.value`` are those of the new program; returning it keeps the
        binding.  Another value is bound to a variable of the same name.
        """
        return binding.value

    def lookup_binding(self, var: Expr) -> Expr | None:
        """The value of `var` in the new program; ``None`` if no block binds it so far."""
        return self.builder.lookup_binding(var) if isinstance(var, Var) else None

    # --- blocks -----------------------------------------------------------------------

    def visit_dataflow_block(self, block: DataflowBlock) -> Block:
        """Rewrite `block`; its outputs keep their names."""
        used_names = self._names - {b.var.name for b in block.bindings}
        with self.builder.rewritten_block(used_names) as bindings:
            for binding in block.bindings:
                self._rewrite(binding)
            new = tuple(bindings)
        self._names |= {b.var.name for b in new}
        same = len(new) == len(block.bindings) and all(
            a is b for a, b in zip(new, block.bindings, strict=True)
        )
        return block if same else DataflowBlock(new)

    def _rewrite(self, binding: Binding) -> None:
        value = self.visit_expr(binding.value)
        if isinstance(binding, MatchCast):
            same = value is binding.value
            self.builder.emit_normalized(binding if same else replace(binding, value=value))
            return
        same = value is binding.value
        visited = binding if same else VarBinding(binding.var, value)
        new = self.visit_dataflow_binding(visited)
        is_output = not isinstance(binding.var, DataflowVar)
        if new is visited.value and new.struct_info == binding.value.struct_info:
            self.builder.emit_normalized(visited)
        elif is_output:
            self.replace_var(binding.var, self.builder.emit_output(new, binding.var.name))
        elif is_leaf(new):
            self.replace_var(binding.var, new)
        else:
            self.replace_var(binding.var, self.builder.emit(new, binding.var.name))
