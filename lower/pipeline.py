"""The order of lowering: from graph functions to scheduled loops, and to the virtual machine.

lower_module(module)     # IRModule -> IRModule, with scheduled loop functions, which can be printed
"""

from relax_egraph.base.parameters import NAME, optional, takes
from relax_egraph.ir.module import MODULE, IRModule
from relax_egraph.ir.well_formed import assert_well_formed
from relax_egraph.lower.emit.machine import scheduling_for
from relax_egraph.lower.fuse_tir import fuse_tir
from relax_egraph.lower.gathered import read_gathered
from relax_egraph.lower.jit.processors import processor
from relax_egraph.lower.legalize_ops import legalize_ops
from relax_egraph.lower.mark_tolerance import mark_tolerance
from relax_egraph.lower.prepare_constants import store_constants
from relax_egraph.lower.schedule_calls import schedule_calls
from relax_egraph.lower.time_loops import time_loops
from relax_egraph.passes import Sequential, inline_called_once, lambda_lift
from relax_egraph.passes.attach_global_symbol import attach_global_symbol
from relax_egraph.passes.call_tir_rewrite import call_tir_rewrite
from relax_egraph.passes.check_claims import check_claims
from relax_egraph.passes.drop_proven_checks import drop_proven_checks
from relax_egraph.passes.kill_after_last_use import kill_after_last_use
from relax_egraph.passes.static_plan_block_memory import static_plan_block_memory
from relax_egraph.passes.to_non_dataflow import to_non_dataflow
from relax_egraph.passes.vm_memory_lower import vm_memory_lower
from relax_egraph.passes.vm_shape_lower import vm_shape_lower

TO_STAGES = Sequential(
    (
        *(time_loops, inline_called_once, lambda_lift, check_claims, drop_proven_checks),
        *(read_gathered, fuse_tir, legalize_ops),
    ),
    name="to-stages",
)
"""Local functions are lifted; operators and fused functions become calls of loop functions."""

TO_LOOPS = Sequential(
    (mark_tolerance, schedule_calls),
    name="to-loops",
)
"""Loop functions are scheduled, and the operands that they prepare from constants are computed."""

TO_VM = Sequential(
    (
        *(to_non_dataflow, call_tir_rewrite, static_plan_block_memory, vm_memory_lower),
        *(kill_after_last_use, vm_shape_lower, attach_global_symbol),
    ),
    name="to-vm",
)
"""Blocks, allocation and symbols become instructions of the virtual machine."""


@takes(module=MODULE, target=optional(NAME))
def lower_module(module: IRModule, *, target: str | None = None) -> IRModule:
    """The module with loop functions, called by ``R.call_tir``, scheduled for `target`.

    Raises `IllFormed` if the module is not well-formed, ``ValueError`` for a name that LLVM does
    not know.
    """
    assert_well_formed(module)
    with scheduling_for(processor("native" if target is None else target)):
        return store_constants(TO_LOOPS(TO_STAGES(module)))
