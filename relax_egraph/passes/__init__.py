"""Passes: functions from module to module that have a name, and the context they run under."""

from relax_egraph.passes.dead_code import remove_all_unused as remove_all_unused
from relax_egraph.passes.fold_constant import fold_constant as fold_constant
from relax_egraph.passes.infra import AssertWellFormed as AssertWellFormed
from relax_egraph.passes.infra import Pass as Pass
from relax_egraph.passes.infra import PassContext as PassContext
from relax_egraph.passes.infra import PassTiming as PassTiming
from relax_egraph.passes.infra import PrintAfter as PrintAfter
from relax_egraph.passes.infra import PrintBefore as PrintBefore
from relax_egraph.passes.infra import Sequential as Sequential
from relax_egraph.passes.infra import function_pass as function_pass
from relax_egraph.passes.infra import module_pass as module_pass
