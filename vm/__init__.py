"""The virtual machine: four instructions; everything else is a packed function."""

from typing import TYPE_CHECKING

from relax_egraph.base.lazy import load_lazily

if TYPE_CHECKING:
    from relax_egraph.base.tagged import Tagged as Tagged
    from relax_egraph.vm.call_report import CallReport as CallReport
    from relax_egraph.vm.debugger import Debugger as Debugger
    from relax_egraph.vm.exec_builder import ExecBuilder as ExecBuilder
    from relax_egraph.vm.executable import Executable as Executable
    from relax_egraph.vm.executable import KernelSet as KernelSet
    from relax_egraph.vm.instrument import CallEvent as CallEvent
    from relax_egraph.vm.instrument import Skip as Skip
    from relax_egraph.vm.machine import VirtualMachine as VirtualMachine
    from relax_egraph.vm.registry import register_func as register_func
    from relax_egraph.vm.registry import registered_names as registered_names
    from relax_egraph.vm.registry import unregister_func as unregister_func
    from relax_egraph.vm.timing import Timing as Timing

load_lazily(
    __name__,
    {
        "relax_egraph.base.tagged": ["Tagged"],
        "relax_egraph.vm.call_report": ["CallReport"],
        "relax_egraph.vm.debugger": ["Debugger"],
        "relax_egraph.vm.exec_builder": ["ExecBuilder"],
        "relax_egraph.vm.executable": ["Executable", "KernelSet"],
        "relax_egraph.vm.instrument": ["CallEvent", "Skip"],
        "relax_egraph.vm.machine": ["VirtualMachine"],
        "relax_egraph.vm.registry": ["register_func", "registered_names", "unregister_func"],
        "relax_egraph.vm.timing": ["Timing"],
    },
)
