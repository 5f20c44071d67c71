"""What machine code depends on beside the loop function: LLVM, the target, and this compiler.

Kernels are looked for in the cache by their loop functions, before LLVM text is written of them,
so their keys name the compiler that would write it: by the sources that it was imported from.
"""

import os
import time
from functools import cache
from pathlib import Path

import llvmlite

from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.jit.machine_code import OPTIONS
from relax_egraph.lower.jit.object_cache import digest

_PARTS = ("codegen", "emit", "intrinsics", "jit", "runtime")
_FOLDERS = (*(f"lower/{part}" for part in _PARTS), "tir", "ir")
"""Where the sources are that code generation imports; schedules are in what they return."""

_SETTLED = 60
"""In seconds: what was changed later than so long before the import may not be what it read."""

_imported = time.time()


@cache
def compiler_version(target: Target) -> str | None:
    """A name for all of it; ``None`` where the sources are not files, or are being edited."""
    sources = _sources()
    if sources is None:
        return None
    llvm = f"llvmlite {llvmlite.__version__}"
    return digest(sources, llvm, target.cpu, target.feature_text, str(target.vector_bits), OPTIONS)


@cache
def _sources() -> str | None:
    """Names, sizes and times of the sources: what Python, too, tells by that they have changed."""
    package = Path(__file__).parents[2]
    found: list[str] = []
    try:
        for folder in _FOLDERS:
            with os.scandir(package / folder) as entries:
                for entry in entries:
                    if not entry.name.endswith(".py"):
                        continue
                    status = entry.stat()
                    if status.st_mtime > _imported - _SETTLED:
                        return None
                    found.append(f"{folder}/{entry.name} {status.st_size} {status.st_mtime_ns}")
    except OSError:
        return None
    return digest(*sorted(found))
