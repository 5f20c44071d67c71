"""Linking of compiled kernels into this process, as Python callables.

A kernel is called as ``kernel(x, w, out, n)``: arrays (inputs before outputs), then integers.  It
raises an `ArgumentError` for an argument that is not an array, has another dtype, is not
C-contiguous or aligned, or is a read-only output, and for a size that is not a 64-bit integer.
Shapes are not checked: they were proven when the program was built.  The interpreter's lock is
released during the call.  If scratch memory cannot be allocated, a ``MemoryError`` is raised, and
the outputs are undefined.
"""

import ctypes
import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from relax_egraph.errors import ArgumentError, ExecutableError
from relax_egraph.lower.emit.target import host
from relax_egraph.lower.jit.compiled import CompiledKernels, KernelInfo
from relax_egraph.lower.jit.entry import (
    MOST_ARGUMENTS,
    SYMBOL,
    descriptor,
    entry_module,
    layout_is_known,
)
from relax_egraph.lower.jit.library import Library, keep_forever, new_library
from relax_egraph.lower.jit.machine_code import cached_object
from relax_egraph.lower.jit.object_cache import default_cache
from relax_egraph.lower.runtime.workspace import WORKSPACE_SYMBOLS, workspace_functions

Kernel: TypeAlias = Callable[..., None]
"""A callable kernel, which keeps its code alive."""


def link(compiled: CompiledKernels, pool: int = 0) -> Mapping[str, Kernel]:
    """Load the kernels; raises `ExecutableError` if this processor lacks features they use.

    They may use the threads of `pool`, an address that must stay valid as long as they live; 0
    means the caller's thread alone.
    """
    here, there = (f"{t.system} on {t.architecture}" for t in (host(), compiled.target))
    if here != there:
        raise ExecutableError(f"kernels compiled for {there}: this is {here}")
    if missing := host().lacks(compiled.target):
        raise ExecutableError(
            f"kernels compiled for {compiled.target.cpu} use {', '.join(sorted(missing))}: "
            f"this processor, {host().cpu}, lacks some of them"
        )
    if not compiled.kernels:
        return {}
    symbols = {info.symbol for info in compiled.kernels.values()}
    library = load(compiled.objects.values(), symbols)
    return {name: _callable(name, info, library, pool) for name, info in compiled.kernels.items()}


def address_of(kernel: Kernel) -> int:
    """The address of the machine code of a linked `kernel`, valid while `kernel` lives.

    The code takes the address of a pool or 0, the addresses of its arrays, then its integers, and
    returns an ``i32``: nonzero if its scratch memory could not be allocated.
    """
    handle = getattr(kernel, "__self__", kernel)
    if not isinstance(handle, _KernelHandle | _ByCtypes):
        raise TypeError(f"{kernel!r} is not a linked kernel")
    return handle.code


@dataclass(frozen=True, slots=True)
class KernelCode:
    """The machine code of a kernel: its address, its signature, and its pool or 0."""

    address: int
    info: KernelInfo
    pool: int


def code_of(kernel: Kernel) -> KernelCode | None:
    """The machine code of a linked `kernel`, valid while `kernel` lives; ``None`` for others."""
    handle = getattr(kernel, "__self__", None)
    if not isinstance(handle, _KernelHandle):
        return None
    return KernelCode(handle.code, handle.info, handle.pool)


class Handle(int):
    """The address of a descriptor, as the ``self`` of a builtin; keeps its referents alive."""

    kept: tuple[object, ...]


class _KernelHandle(Handle):
    code: int
    info: KernelInfo
    pool: int


class _Method(ctypes.Structure):
    """CPython's ``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


FASTCALL, KEYWORDS = 0x80, 0x2


def load(objects: Collection[bytes], symbols: Collection[str]) -> Library:
    """Link the objects with one another, with this process, and with the workspace functions."""
    names = [symbol.encode() for symbol in WORKSPACE_SYMBOLS]
    uses_workspace = any(name in data for data in objects for name in names)
    return new_library(objects, symbols, workspace_functions() if uses_workspace else {})


@cache
def _entry() -> Library:
    data = cached_object(str(entry_module(host())), host(), default_cache())
    return load([data], [SYMBOL])


def _callable(name: str, info: KernelInfo, library: Library, pool: int) -> Kernel:
    if layout_is_known() and len(info.dtypes) + info.num_scalars <= MOST_ARGUMENTS:
        return _builtin(name, info, library, pool)
    return _ByCtypes(name, info, library, pool)


def _builtin(name: str, info: KernelInfo, library: Library, pool: int) -> Kernel:
    entry, code = _entry(), library.tracker[info.symbol]
    message = ctypes.create_string_buffer(_needs(name, info).encode())
    words = descriptor(code, info, pool, ctypes.addressof(message))
    handle = _KernelHandle(ctypes.addressof(words))
    handle.code, handle.info, handle.pool = code, info, pool
    handle.kept = (words, message, library)
    return builtin(name, entry, SYMBOL, handle, FASTCALL)


def builtin(
    name: str, library: Library, symbol: str, handle: Handle, flags: int
) -> Callable[..., Any]:
    """The builtin function at `symbol`, called by the convention `flags` with ``self`` `handle`."""
    method = _method(name, library.tracker[symbol], flags)
    handle.kept = (*handle.kept, library)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    return make(method, handle, None)


@cache
def _method(name: str, code: int, flags: int) -> int:
    """The address of the definition of a builtin, valid until the process ends.

    CPython reads it when it frees the builtin.  By then the garbage collector may have emptied the
    ``self``, so that nothing that `self` refers to lives long enough.  Names recur from model to
    model, and `code` is that of one of two routines.
    """
    method = _Method(name.encode(), code, flags, None)
    keep_forever(method)
    return ctypes.addressof(method)


class _ByCtypes:
    """A kernel called through ctypes, which takes some microseconds, with the same checks."""

    def __init__(self, name: str, info: KernelInfo, library: Library, pool: int) -> None:
        self.code = library.tracker[info.symbol]
        self._name, self._info, self._library, self._pool = name, info, library, pool
        arrays = [ctypes.c_void_p] * len(info.dtypes)
        scalars = [ctypes.c_int64] * info.num_scalars
        self._call = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, *arrays, *scalars)(self.code)

    def __call__(self, *args: Any) -> None:
        info, count = self._info, len(self._info.dtypes)
        arrays, scalars = args[:count], args[count:]
        inputs = count - info.num_outputs
        fits = len(args) == count + info.num_scalars and all(
            type(a) is np.ndarray
            and a.dtype == dtype
            and a.flags.c_contiguous
            and a.flags.aligned
            and (k < inputs or a.flags.writeable)
            for k, (a, dtype) in enumerate(zip(arrays, info.dtypes, strict=False))
        )
        if not fits or not all(map(_is_word, scalars)):
            raise ArgumentError(_needs(self._name, info))
        addresses = (a.ctypes.data for a in arrays)
        if self._call(self._pool, *addresses, *map(operator.index, scalars)):
            raise MemoryError


def _is_word(value: Any) -> bool:
    """Whether `value` is a 64-bit integer."""
    try:
        return -(1 << 63) <= operator.index(value) < 1 << 63
    except TypeError:
        return False


def _needs(name: str, info: KernelInfo) -> str:
    inputs = len(info.dtypes) - info.num_outputs
    params = [f"{dtype}[]" for dtype in info.dtypes[:inputs]]
    params += [f"writeable {dtype}[]" for dtype in info.dtypes[inputs:]]
    params += ["int"] * info.num_scalars
    return f"{name}({', '.join(params)}) needs these arguments, arrays C-contiguous and aligned"
