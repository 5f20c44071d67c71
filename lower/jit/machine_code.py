"""LLVM text to machine code.

The text is parsed and verified, then compiled as it stands: vectors are explicit, so that
optimisation passes would gain nothing.  Only buffers on the stack are promoted to registers.
"""

from functools import cache

import llvmlite
import llvmlite.binding as llvm

from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.jit.object_cache import ObjectCache, digest

_LEVEL = 1  # at 0, code with masks ends the process
OPTIONS = f"O{_LEVEL} pic small sroa"


def new_machine(target: Target) -> llvm.TargetMachine:
    """A code generator of LLVM for `target`."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=target.cpu,
        features=target.feature_text,
        opt=_LEVEL,
        reloc="pic",
        codemodel="small",
    )


_machine = cache(new_machine)


def cached_object(text: str, target: Target, cache: ObjectCache) -> bytes:
    """The object file of a module, from `cache` if it has been made before.

    Raises ``RuntimeError`` if LLVM does not accept the text.
    """
    compiler = f"llvmlite {llvmlite.__version__}"
    key = digest(text, compiler, target.cpu, target.feature_text, OPTIONS)
    data = cache.get(key)
    if data is None:
        data = compiled_object(text, target)
        cache.put(key, data)
    return data


def compiled_object(text: str, target: Target) -> bytes:
    """The object file of a module; raises as `cached_object`."""
    return bytes(_machine(target).emit_object(_parsed(text, target)))


def assembly(text: str, target: Target) -> str:
    """The machine code of a module, in assembly language."""
    return _machine(target).emit_assembly(_parsed(text, target))


def _parsed(text: str, target: Target) -> llvm.ModuleRef:
    machine = _machine(target)
    head = f'target triple = "{machine.triple}"\ntarget datalayout = "{machine.target_data}"\n'
    module = llvm.parse_assembly(head + text, llvm.create_context())
    module.verify()
    if " = alloca " in text:
        builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options())
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.run(module, builder)
    return module
