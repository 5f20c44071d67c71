"""From a module to an executable: loops, schedules, machine code, bytecode.

    build(module)            # IRModule -> Executable, ready to run or save
    lower_module(module)     # the same, as far as scheduled loop functions: it prints
    llvm_text(module)        # the LLVM text of each kernel
    load("model.rxe")        # a saved executable, with its kernels linked

What no kernel runs, because a shape is known only at run time, calls ``relax.run.<operator>``: the
operator's numpy reference.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from relax_egraph.errors import IllFormed
from relax_egraph.ir.depth import deep
from relax_egraph.ir.evaluate import apply_op
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.op import OPS
from relax_egraph.ir.well_formed import assert_well_formed
from relax_egraph.lower import jit
from relax_egraph.lower.fuse_tir import fuse_tir
from relax_egraph.lower.intrinsics import INTRINSICS
from relax_egraph.lower.jit.compiled import CompiledKernels
from relax_egraph.lower.legalize.run_time import PREFIX, run_time_attrs
from relax_egraph.lower.legalize_ops import legalize_ops
from relax_egraph.lower.pack_constants import pack_constants
from relax_egraph.lower.prepare_constants import mark_constant_inputs, prepare_constants
from relax_egraph.lower.runtime.driver_link import driver
from relax_egraph.lower.runtime.threads import thread_count, thread_pool
from relax_egraph.lower.schedule import schedule
from relax_egraph.lower.vm_codegen import codegen
from relax_egraph.passes import Sequential, inline_called_once, lambda_lift, module_pass
from relax_egraph.passes.call_tir_rewrite import call_tir_rewrite
from relax_egraph.passes.check_claims import check_claims
from relax_egraph.passes.to_non_dataflow import to_non_dataflow
from relax_egraph.passes.vm_memory_lower import vm_memory_lower
from relax_egraph.passes.vm_shape_lower import vm_shape_lower
from relax_egraph.tir.stmt import PrimFunc
from relax_egraph.vm.arguments import convert
from relax_egraph.vm.executable import Executable, KernelSet


@module_pass(name="schedule")
def schedule_all(module: IRModule) -> IRModule:
    """Give each loop function its loops."""
    functions: dict[str, BaseFunc] = {
        name: schedule(f) if isinstance(f, PrimFunc) else f for name, f in module.functions.items()
    }
    return IRModule(functions)


LOWER = Sequential(
    (
        *(inline_called_once, lambda_lift, check_claims, fuse_tir, legalize_ops),
        *(pack_constants, mark_constant_inputs, schedule_all, prepare_constants),
    ),
    name="lower",
)
"""Local functions are lifted; operators and fused functions become calls of scheduled loops."""

TO_VM = Sequential(
    (to_non_dataflow, call_tir_rewrite, vm_memory_lower, vm_shape_lower), name="to-vm"
)
"""Blocks, allocation and symbols become what the virtual machine knows."""


def lower_module(module: IRModule) -> IRModule:
    """The module with scheduled loop functions, called by ``R.call_tir``.

    Raises `IllFormed` if the module breaks a law of the IR.
    """
    assert_well_formed(module)
    return LOWER(module)


@deep(IllFormed, "the module is nested too deeply")
def build(module: IRModule) -> Executable:
    """Compile `module` for this processor.

    Raises `IllFormed` for a module that breaks a law of the IR, `NotLowerable` for a loop function
    that no machine code is written for.
    """
    lowered = lower_module(module)
    compiled = jit.compile_kernels(_prim_funcs(lowered), intrinsics=INTRINSICS)
    symbols = {name: info.symbol for name, info in compiled.kernels.items()}
    kernel_set = KernelSet(compiled.target.cpu, compiled.to_bytes(), symbols)
    executable = codegen(TO_VM(lowered))
    return replace(executable, kernels=(kernel_set,), linker=link, driver=driver())


def load(path: str | Path) -> Executable:
    """Read a saved executable; raises `ExecutableError` if it is damaged or not for this one."""
    return replace(Executable.load(path), linker=link, driver=driver())


def llvm_text(module: IRModule) -> str:
    """The LLVM text of each kernel of `module`, one after the other."""
    functions = _prim_funcs(lower_module(module))
    texts = (jit.llvm_text(f, intrinsics=INTRINSICS) for f in functions.values())
    return "\n".join(f"; {name}\n{text}" for name, text in zip(functions, texts, strict=True))


def link(
    executable: Executable, num_threads: int | None = None
) -> Mapping[str, Callable[..., Any]]:
    """The kernels of `executable` as callables, and the operators it calls at run time.

    The kernels share `num_threads` threads, the caller's among them; see `thread_count`.
    """
    count = thread_count(num_threads)
    linked: dict[str, Callable[..., Any]] = {
        name: _at_run_time(name) for name in executable.packed_names if name.startswith(PREFIX)
    }
    for kernel_set in executable.kernels:
        compiled = CompiledKernels.from_bytes(kernel_set.code)
        linked.update(jit.link(compiled, thread_pool(count)))
    return linked


def _prim_funcs(module: IRModule) -> dict[str, PrimFunc]:
    return {name: f for name, f in module.functions.items() if isinstance(f, PrimFunc)}


def _at_run_time(name: str) -> Callable[..., Any]:
    """The packed function for an operator: operands, then each attribute."""
    op = OPS[name.removeprefix(PREFIX)]

    def run(*args: Any) -> Any:
        count = len(args) - len(op.attrs)
        result = apply_op(op, args[:count], run_time_attrs(op, args[count:]))
        return convert(f"the result of {name!r}", result)

    return run
