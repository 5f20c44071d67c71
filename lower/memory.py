"""Memory plans of programs.

plans = plan_memory(module)                      # {"main": MemoryPlan}
plans["main"].peak({"n": 128})                   # bytes
"""

from relax_egraph.base.parameters import takes
from relax_egraph.errors import IllFormed
from relax_egraph.ir.depth import deep
from relax_egraph.ir.dims import Dim as Dim
from relax_egraph.ir.module import MODULE, IRModule
from relax_egraph.lower.pipeline import lower_module
from relax_egraph.passes.analyses import plan_memory as planning
from relax_egraph.passes.analyses.memory_plan import MemoryPlan as MemoryPlan
from relax_egraph.passes.analyses.memory_plan import size_text as size_text
from relax_egraph.passes.call_tir_rewrite import call_tir_rewrite
from relax_egraph.passes.to_non_dataflow import to_non_dataflow


@takes(module=MODULE)
@deep(IllFormed, "the module is nested too deeply")
def plan_memory(module: IRModule) -> dict[str, MemoryPlan]:
    """The plan that `build` uses for each function of `module`.

    Raises `IllFormed` for a module that is not well-formed, or has an invalid upper bound.
    """
    return planning.plan_memory(call_tir_rewrite(to_non_dataflow(lower_module(module))))
