"""The virtual machine: four instructions, everything else a packed function."""

from relax_egraph.vm.exec_builder import ExecBuilder as ExecBuilder
from relax_egraph.vm.executable import Executable as Executable
from relax_egraph.vm.executable import KernelSet as KernelSet
from relax_egraph.vm.machine import VirtualMachine as VirtualMachine
from relax_egraph.vm.registry import register_func as register_func
