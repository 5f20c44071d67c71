"""The functions of this process that machine code may call: those of its C library."""

import ctypes
import sys
from functools import cache

_WINDOWS = ("ucrtbase", "vcruntime140", "kernel32", "ntdll")
"""The libraries of every process that runs Python on Windows; frames of more than a page call
``__chkstk`` of the last."""


def has_function(name: str) -> bool:
    """Whether LLVM's linker finds the function `name` in this process."""
    return any(hasattr(library, name) for library in _libraries())


@cache
def _libraries() -> tuple[ctypes.CDLL, ...]:
    if sys.platform == "win32":
        return tuple(map(ctypes.CDLL, _WINDOWS))
    return (ctypes.CDLL(None),)
