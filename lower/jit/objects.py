"""Validation of object files before LLVM's linker reads them, in the format of each system.

The linker crashes on many damaged files.  So only files in the form that LLVM writes for kernels
are accepted.  The machine code itself cannot be checked.  Windows loads ELF, too, as objects need
nothing of COFF but its constants, which are global symbols there.
"""

import struct

from relax_egraph.errors import ExecutableError
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.jit import elf, macho
from relax_egraph.lower.jit.object_symbols import Fault, ObjectSymbols


def symbols_of(data: bytes, target: Target) -> ObjectSymbols:
    """The symbols of the object file `data`.

    Raises `ExecutableError` if it does not have the form that LLVM writes for `target`.
    """
    read = macho.symbols_of if target.system == "darwin" else elf.symbols_of
    try:
        return read(data, target.architecture)
    except (Fault, struct.error) as error:
        raise ExecutableError(f"section objects: an object file is damaged: {error}") from None
