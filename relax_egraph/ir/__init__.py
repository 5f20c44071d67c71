"""The intermediate representation: dimensions, struct info, expressions, operators, modules."""

from typing import TYPE_CHECKING

from relax_egraph.base.lazy import load_lazily

if TYPE_CHECKING:
    from relax_egraph.ir import ops as ops
    from relax_egraph.ir.block_builder import BlockBuilder as BlockBuilder
    from relax_egraph.ir.block_builder import call as call
    from relax_egraph.ir.block_builder import call_packed as call_packed
    from relax_egraph.ir.block_builder import call_tir as call_tir
    from relax_egraph.ir.composites import linear as linear
    from relax_egraph.ir.dims import symbol as symbol
    from relax_egraph.ir.expr import Var as Var
    from relax_egraph.ir.expr import const as const
    from relax_egraph.ir.expr import shape as shape
    from relax_egraph.ir.module import IRModule as IRModule
    from relax_egraph.ir.struct_info import tensor as tensor

load_lazily(
    __name__,
    {
        "relax_egraph.ir.block_builder": ["BlockBuilder", "call", "call_packed", "call_tir"],
        "relax_egraph.ir.composites": ["linear"],
        "relax_egraph.ir.dims": ["symbol"],
        "relax_egraph.ir.expr": ["Var", "const", "shape"],
        "relax_egraph.ir.module": ["IRModule"],
        "relax_egraph.ir.struct_info": ["tensor"],
    },
    modules=["relax_egraph.ir.ops"],
)
