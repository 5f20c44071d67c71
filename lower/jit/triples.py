"""LLVM's names of the systems that machine code is for."""

import llvmlite.binding as llvm

from relax_egraph.lower.emit.target import Target, this_architecture, this_system

SYSTEMS = {
    "linux": "unknown-linux-gnu",
    "darwin": "apple-macosx11.0.0",
    "win32": "pc-windows-msvc-elf",
}
"""The systems that code can be compiled for on another one, and the rest of the triple of each."""


def triple_of(target: Target) -> str:
    """LLVM's triple for `target`, that of this process where it is for this system."""
    if (target.architecture, target.system) == (this_architecture(), this_system()):
        return llvm.get_default_triple()
    return f"{target.architecture}-{SYSTEMS[target.system]}"
