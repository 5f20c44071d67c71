"""What machine code depends on beside the loop function: LLVM, the target, and this compiler.

Kernels are looked for in the cache by their loop functions, before LLVM text is written of them,
so their keys name the compiler that would write it: by the sources that it was imported from.
"""

from functools import cache

import llvmlite

from relax_egraph.base.sources import sources_in
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.jit.machine_code import OPTIONS
from relax_egraph.lower.jit.object_cache import digest

_PARTS = ("codegen", "emit", "intrinsics", "jit", "runtime")
_FOLDERS = (*(f"lower/{part}" for part in _PARTS), "tir", "ir")
"""Where the sources are that code generation imports; schedules are in what they return."""


@cache
def compiler_version(target: Target) -> str | None:
    """A name for all of it; ``None`` where the sources are not files, or are being edited."""
    sources = sources_in(_FOLDERS)
    if sources is None:
        return None
    llvm = f"llvmlite {llvmlite.__version__}"
    said = (llvm, target.cpu, target.feature_text, str(target.vector_bits), OPTIONS)
    return digest(*sources, *said)
