"""Passes, which are named functions from module to module, and the context that they run in."""

from relax_egraph.passes.bind_params import bind_params as bind_params
from relax_egraph.passes.bind_symbolic_vars import bind_symbolic_vars as bind_symbolic_vars
from relax_egraph.passes.canonicalize_bindings import canonicalize_bindings as canonicalize_bindings
from relax_egraph.passes.check_claims import check_claims as check_claims
from relax_egraph.passes.common_subexpr import eliminate_common_subexpr as eliminate_common_subexpr
from relax_egraph.passes.convert_to_dataflow import convert_to_dataflow as convert_to_dataflow
from relax_egraph.passes.dataflow_block_pass import dataflowblock_pass as dataflowblock_pass
from relax_egraph.passes.dead_code import dead_code_elimination as dead_code_elimination
from relax_egraph.passes.dead_code import remove_all_unused as remove_all_unused
from relax_egraph.passes.fit_operands import fit_operands as fit_operands
from relax_egraph.passes.fold_constant import fold_constant as fold_constant
from relax_egraph.passes.fold_shapes import fold_shapes as fold_shapes
from relax_egraph.passes.infra import Pass as Pass
from relax_egraph.passes.infra import PassContext as PassContext
from relax_egraph.passes.infra import Sequential as Sequential
from relax_egraph.passes.infra import function_pass as function_pass
from relax_egraph.passes.infra import module_pass as module_pass
from relax_egraph.passes.inline_functions import (
    inline_called_once as inline_called_once,
)
from relax_egraph.passes.inline_functions import (
    inline_private_functions as inline_private_functions,
)
from relax_egraph.passes.instruments import AssertWellFormed as AssertWellFormed
from relax_egraph.passes.instruments import PassTiming as PassTiming
from relax_egraph.passes.instruments import PrintAfter as PrintAfter
from relax_egraph.passes.instruments import PrintBefore as PrintBefore
from relax_egraph.passes.lambda_lift import lambda_lift as lambda_lift
from relax_egraph.passes.merge_dataflow import merge_dataflow_blocks as merge_dataflow_blocks
from relax_egraph.passes.name_extents import name_extents as name_extents
from relax_egraph.passes.normalize import normalize as normalize
from relax_egraph.passes.options import declare_option as declare_option
from relax_egraph.passes.refine_shapes import refine_parameters as refine_parameters
from relax_egraph.passes.refine_shapes import refine_shapes as refine_shapes
from relax_egraph.passes.share_constants import share_constants as share_constants
