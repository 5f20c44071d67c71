"""`DenseAddFusor`: a product and the sum behind it become a function of their own."""

from typing import TypeGuard

from relax_egraph import BlockBuilder, IRModule
from relax_egraph.ir.block_builder import call as apply
from relax_egraph.ir.dataflow_mutator import DataflowMutator
from relax_egraph.ir.expr import Call, Expr, Function, Var
from relax_egraph.ir.op import OPS
from relax_egraph.passes import module_pass, remove_all_unused


class DenseAddFusor(DataflowMutator):
    """The listing; its ``transform`` is the inherited one.

    Corrected: the listing asks for an attribute ``Primitive`` and reads ``primitive``.
    """

    def __init__(self, module: IRModule) -> None:
        super().__init__(module)
        self.counter = 0

    def visit_function(self, function: Function) -> Expr:
        """Nothing is fused twice."""
        return function if function.attrs.get("primitive") else super().visit_function(function)

    def visit_call(self, call: Call) -> Expr:
        visited = super().visit_call(call)
        if not match_call(visited, "add"):
            return visited
        value = self.lookup_binding(visited.args[0])
        if value is None or not match_call(value, "matmul"):
            return visited

        x, w = value.args
        b = visited.args[1]
        param_x = Var("x", x.struct_info)
        param_w = Var("w", w.struct_info)
        param_b = Var("b", b.struct_info)

        bb = BlockBuilder()
        fn_name = f"fused_dense_add{self.counter}"
        self.counter += 1
        with bb.function(fn_name, [param_x, param_w, param_b], {"primitive": True}):
            with bb.dataflow():
                lv0 = bb.emit(apply("matmul", param_x, param_w))
                gv0 = bb.emit_output(apply("add", lv0, param_b))
            bb.emit_func_output(gv0)

        global_var = self.builder.add_func(bb.get()[fn_name], fn_name)
        return Call(global_var, (x, w, b), struct_info=visited.struct_info)


def match_call(node: Expr, name: str) -> TypeGuard[Call]:
    return isinstance(node, Call) and node.op is OPS[name]


@module_pass(opt_level=2, name="DenseAddFuse")
def fuse_dense_add(module: IRModule) -> IRModule:
    """The wrapper for `DenseAddFusor`."""
    return remove_all_unused(DenseAddFusor(module).transform())
