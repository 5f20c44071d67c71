"""LLVM text to machine code; run as a program, it compiles texts in a process of its own.

It imports nothing of this package, so the program starts fast.

The text is parsed and verified, then compiled without optimisation passes: vectors are explicit, so
passes would gain nothing.  Only stack buffers are promoted to registers.
"""

import json
import sys

import llvmlite.binding as llvm

_LEVEL = 1  # level 0 crashes on masked code
OPTIONS = f"O{_LEVEL} pic small sroa"


def new_machine(triple: str, cpu: str, features: str) -> llvm.TargetMachine:
    """A code generator of LLVM; `features` has the form ``+avx2,+fma``."""
    if triple == llvm.get_default_triple():
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
    else:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=features, opt=_LEVEL, reloc="pic", codemodel="small"
    )


def parsed(text: str, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    """The verified module of `text`; raises ``RuntimeError`` if LLVM rejects it."""
    head = f'target triple = "{machine.triple}"\ntarget datalayout = "{machine.target_data}"\n'
    module = llvm.parse_assembly(head + text, llvm.create_context())
    module.verify()
    if " = alloca " in text:
        builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options())
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.run(module, builder)
    return module


def main() -> None:
    """Compile the request on standard input; a JSON line and the objects go to standard output."""
    request = json.load(sys.stdin.buffer)
    objects: list[bytes] = []
    try:
        machine = new_machine(*request["machine"])
        objects += (bytes(machine.emit_object(parsed(t, machine))) for t in request["texts"])
        answer: dict[str, object] = {"sizes": [len(data) for data in objects]}
    except RuntimeError as error:
        answer, objects = {"error": str(error)}, []
    sys.stdout.buffer.write(b"".join([json.dumps(answer).encode(), b"\n", *objects]))


if __name__ == "__main__":
    main()
