"""The virtual machine: four instructions; everything else is a packed function."""

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
