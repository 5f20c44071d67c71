"""The version of the compiler: everything machine code depends on beside the loop function.

Kernels are cached by their loop functions, before LLVM text is written, so their keys include the
version: LLVM, the target, and the sources of this compiler.
"""

from functools import cache

import llvmlite

from relax_egraph.base.sources import sources_in
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.jit.machine_code import OPTIONS
from relax_egraph.lower.jit.object_cache import digest

_PARTS = ("codegen", "emit", "intrinsics", "jit", "runtime")
_FOLDERS = (*(f"lower/{part}" for part in _PARTS), "tir", "ir")
"""The folders of the sources of code generation; schedules are part of the loop functions."""


@cache
def compiler_version(target: Target) -> str | None:
    """A hash of the version; ``None`` if the sources are not files, or are being edited."""
    sources = sources_in(_FOLDERS)
    if sources is None:
        return None
    llvm = f"llvmlite {llvmlite.__version__}"
    place = (target.cpu, target.feature_text, target.architecture, target.system)
    settings = (llvm, *place, str(target.vector_bits), OPTIONS)
    return digest(*sources, *settings)
