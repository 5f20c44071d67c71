"""From a module to an executable: lowered, compiled, and put together.

build(module)            # IRModule -> Executable, ready to run or save
llvm_text(module)        # the LLVM text of each kernel
assembly_text(module)    # what becomes of that on a processor
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from relax_egraph.base.log import phase
from relax_egraph.base.parameters import FLAG, NAME, check, collection, optional, takes
from relax_egraph.base.signatures import readable
from relax_egraph.errors import IllFormed
from relax_egraph.ir.called import called_operators, operators_for
from relax_egraph.ir.collection import no_collection
from relax_egraph.ir.depth import deep
from relax_egraph.ir.message import counted
from relax_egraph.ir.module import MODULE, IRModule
from relax_egraph.ir.well_formed import assert_well_formed
from relax_egraph.loading import link
from relax_egraph.lower import jit
from relax_egraph.lower.emit.machine import scheduling_for
from relax_egraph.lower.emit.target import ANY, Target
from relax_egraph.lower.intrinsics import INTRINSICS
from relax_egraph.lower.jit.kernel_sets import kernel_set
from relax_egraph.lower.jit.listing import assemblies
from relax_egraph.lower.jit.processors import processor
from relax_egraph.lower.pipeline import TO_LOOPS, TO_STAGES, TO_VM
from relax_egraph.lower.runtime.driver_link import driver
from relax_egraph.lower.schedule_calls import promises_in
from relax_egraph.lower.vm_codegen import codegen
from relax_egraph.lower.work import work_of
from relax_egraph.passes.dispatch import bounds_of
from relax_egraph.tir.stmt import PrimFunc
from relax_egraph.vm.executable import Executable
from relax_egraph.vm.interfaces import KEY as INTERFACES
from relax_egraph.vm.interfaces import Interface, interfaces_text
from relax_egraph.vm.promises import KEY as PROMISES
from relax_egraph.vm.promises import promises_text

LOG = logging.getLogger(__name__)

_TARGETS = collection('a sequence of processors, such as ["native"]', NAME)
_BUILD = {"module": MODULE, "targets": _TARGETS, "target": optional(NAME), "portable": FLAG}
"""Checked within `build`: what wraps a function holds its arguments, and so their weights."""


@readable
def build(
    module: IRModule,
    targets: Sequence[str] = ("native",),
    *,
    target: str | None = None,
    portable: bool = False,
) -> Executable:
    """Compile `module` for processors: this one, ``"generic"``, ``"x86-64-v3"``, ``"znver4"``.

    `target` is the only one, instead of `targets`.  Weights are packed for the first one; kernels
    for the others read them so, too.

    The executable runs where the system is the same and one of `targets` is no more than what the
    processor has; if it is `portable`, elsewhere too: it then has LLVM texts, of which machine code
    is made when they are linked.  See `processor` for names, also of other systems.

    Raises `IllFormed` for a module that breaks a law of the IR, `NotLowerable` for a loop function
    that no machine code is written for, ``ValueError`` for a name that LLVM does not know.
    """
    options = {"targets": targets, "target": target, "portable": portable}
    check(_BUILD, {"module": module, **options})
    wanted = targets if target is None else (target,)
    chosen = list(dict.fromkeys(map(processor, wanted))) + ([ANY] if portable else [])
    with deep(IllFormed, "the module is nested too deeply"), no_collection():
        assert_well_formed(module)
        interfaces = {
            name: Interface(str(f.ret_struct_info), bounds_of(f))
            for name, f in module.relax_functions()
            if not f.attrs.get("private", False)
        }
        has_own = any(op.own for op in called_operators(module))
        operators = operators_for(module) if has_own else None
        first, *others = chosen
        with phase(LOG, "lower to loops"):
            staged = TO_STAGES(module)
            with scheduling_for(first):
                lowered = TO_LOOPS(staged)
        kernels = _prim_funcs(lowered)
        with phase(LOG, "compile %s for %s", counted(len(kernels), "kernel"), first.cpu):
            compiled = [jit.compile_kernels(kernels, first, INTRINSICS)]
        for other in others:
            with scheduling_for(other, packed_for=first):
                own = _prim_funcs(TO_LOOPS(staged))
            with phase(LOG, "compile %s for %s", counted(len(own), "kernel"), other.cpu):
                compiled.append(jit.compile_kernels(own, other, INTRINSICS))
        work = work_of(staged, kernels)
        program = TO_VM(lowered)
        del module, staged, lowered  # a weight that nobody else holds is let go when it is packed
        with phase(LOG, "prepare constants, write bytecode"):
            executable = codegen(program)
    linker = partial(link, operators=operators) if operators else link
    sets = tuple(map(kernel_set, compiled))
    metadata = {INTERFACES: interfaces_text(interfaces)} if interfaces else {}
    if promises := promises_in(kernels):
        metadata[PROMISES] = promises_text(promises)
    return replace(
        executable, kernels=sets, work=work, metadata=metadata, linker=linker, driver=driver()
    )


@takes(module=MODULE, target=optional(NAME))
def llvm_text(module: IRModule, *, target: str | None = None) -> str:
    """The LLVM text of each kernel of `module` for `target`, by default this processor."""
    chosen = processor("native" if target is None else target)
    functions = _loops(module, chosen)
    texts = (jit.llvm_text(f, chosen, INTRINSICS) for f in functions.values())
    return "\n".join(f"; {name}\n{text}" for name, text in zip(functions, texts, strict=True))


@takes(module=MODULE, target=optional(NAME))
def assembly_text(module: IRModule, *, target: str | None = None) -> str:
    """The machine code for `target`, by default this processor, in assembly language.

    It is of each kernel of `module` that differs from the others, and of what they call.
    """
    chosen = processor("native" if target is None else target)
    texts = assemblies(_loops(module, chosen), INTRINSICS, chosen)
    return "\n".join(f"# {name}\n{text}" for name, text in texts)


def _loops(module: IRModule, target: Target) -> dict[str, PrimFunc]:
    """The loop functions of `module`, scheduled for `target`."""
    assert_well_formed(module)
    with scheduling_for(target):
        return _prim_funcs(TO_LOOPS(TO_STAGES(module)))


def _prim_funcs(module: IRModule) -> dict[str, PrimFunc]:
    return {name: f for name, f in module.functions.items() if isinstance(f, PrimFunc)}
