"""Lowers each tensor allocation to a storage of bytes and a tensor in it."""

import numpy as np

from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import call
from relax_egraph.ir.expr import (
    Call,
    Expr,
    Function,
    PrimValue,
    ShapeExpr,
    StringImm,
    VarBinding,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.op import OPS
from relax_egraph.passes.infra import function_pass


@function_pass(name="vm_memory_lower")
def vm_memory_lower(function: Function, _: IRModule) -> Function:
    """Give each tensor its own storage, of its size in bytes.

        alloc = R.builtin.alloc_tensor(R.shape([n, 4]), "float32")
        -->
        storage = R.memory.alloc_storage(R.prim_value(n * 16))
        alloc = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([n, 4]), "float32")

    A size that depends on a computed shape is computed by ``R.memory.size_of``.
    """
    changed = _MemoryLower().visit_expr(function)
    assert isinstance(changed, Function)
    return changed


class _MemoryLower(ExprMutator):
    def visit_var_binding(self, binding: VarBinding) -> None:
        match binding.value:
            case Call(op=op, args=[shape, StringImm() as dtype]) if (
                op is OPS["builtin.alloc_tensor"]
            ):
                extents = self.visit_expr(shape)
                storage = self.emit(
                    call("memory.alloc_storage", self._size(extents, dtype)), "storage"
                )
                value = call("memory.alloc_tensor", storage, PrimValue(0), extents, dtype)
                self.emit_binding(VarBinding(binding.var, value))
            case _:
                super().visit_var_binding(binding)

    def _size(self, shape: Expr, dtype: StringImm) -> Expr:
        if isinstance(shape, ShapeExpr):
            return PrimValue(dims.mul(dims.product(shape.values), np.dtype(dtype.value).itemsize))
        return self.emit(call("memory.size_of", shape, dtype), "size")
