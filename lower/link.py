"""Compiled kernels into this process, as Python callables.

A kernel is called as ``kernel(x, w, out, n)``: arrays, inputs then outputs, then integers.  It
refuses, with a ``TypeError``, an argument that is no array, is of another dtype, not
C-contiguous, not aligned, or a read-only output.  Shapes are trusted: they were proven when the
program was built.  The interpreter's lock is released while it runs.
"""

import ctypes
import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import count
from threading import Lock
from typing import Any, TypeAlias

import llvmlite.binding as llvm
import numpy as np

from relax_egraph.errors import ExecutableError
from relax_egraph.lower.compiled import CompiledKernels, KernelInfo
from relax_egraph.lower.entry import (
    MOST_ARGUMENTS,
    SYMBOL,
    descriptor,
    entry_module,
    layout_is_known,
)
from relax_egraph.lower.machine_code import cached_object, new_machine
from relax_egraph.lower.object_cache import default_cache
from relax_egraph.lower.target import host

Kernel: TypeAlias = Callable[..., None]
"""A kernel that can be called; its code lives as long as it."""

_numbers = count()
_lock = Lock()


def link(compiled: CompiledKernels, pool: int = 0) -> Mapping[str, Kernel]:
    """Load the kernels; raises `ExecutableError` if this processor lacks what they use.

    They may use the threads of `pool`, an address that lives as long as they; 0 is no thread but
    the caller's.
    """
    missing = compiled.target.features - host().features
    if missing:
        raise ExecutableError(
            f"kernels compiled for {compiled.target.cpu} use {', '.join(sorted(missing))}: "
            f"this processor, {host().cpu}, has not all of it"
        )
    if not compiled.kernels:
        return {}
    symbols = {info.symbol for info in compiled.kernels.values()}
    library = _load(compiled.objects.values(), symbols)
    return {name: _callable(name, info, library, pool) for name, info in compiled.kernels.items()}


def address_of(kernel: Kernel) -> int:
    """Where the machine code of a linked `kernel` begins; valid as long as `kernel` lives.

    It takes the address of a pool or 0, those of its arrays, then its integers.
    """
    handle = getattr(kernel, "__self__", kernel)
    if not isinstance(handle, _Handle | _ByCtypes):
        raise TypeError(f"{kernel!r} is no linked kernel")
    return handle.code


@dataclass(frozen=True, slots=True)
class _Library:
    """Loaded code.  The tracker is dropped, and the code with it, before the session."""

    tracker: llvm.ResourceTracker
    session: llvm.LLJIT


class _Handle(int):
    """The address of a descriptor, as a kernel's ``self``; keeps alive what the kernel needs."""

    code: int
    kept: tuple[object, ...]


class _Method(ctypes.Structure):
    """CPython's ``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_FASTCALL = 0x80


@cache
def _session() -> llvm.LLJIT:
    return llvm.create_lljit_compiler(new_machine(host()), use_jit_link=True)


def _load(objects: Collection[bytes], symbols: Collection[str]) -> _Library:
    """The objects, linked with one another and with this process."""
    builder = llvm.JITLibraryBuilder().add_current_process()
    for data in objects:
        builder.add_object_img(data)
    for symbol in symbols:
        builder.export_symbol(symbol)
    with _lock:
        session = _session()
        return _Library(builder.link(session, f"kernels{next(_numbers)}"), session)


@cache
def _entry() -> _Library:
    data = cached_object(str(entry_module(host())), host(), default_cache())
    return _load([data], [SYMBOL])


def _callable(name: str, info: KernelInfo, library: _Library, pool: int) -> Kernel:
    if layout_is_known() and len(info.dtypes) + info.num_scalars <= MOST_ARGUMENTS:
        return _builtin(name, info, library, pool)
    return _ByCtypes(name, info, library, pool)


def _builtin(name: str, info: KernelInfo, library: _Library, pool: int) -> Kernel:
    entry, code = _entry(), library.tracker[info.symbol]
    message = ctypes.create_string_buffer(_needs(name, info).encode())
    words = descriptor(code, info, pool, ctypes.addressof(message))
    method = _Method(name.encode(), entry.tracker[SYMBOL], _FASTCALL, None)
    handle = _Handle(ctypes.addressof(words))
    handle.code = code
    handle.kept = (words, message, method, library, entry)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    return make(ctypes.addressof(method), handle, None)


class _ByCtypes:
    """A kernel that ctypes calls, with the checks of the built-in ones: some microseconds."""

    def __init__(self, name: str, info: KernelInfo, library: _Library, pool: int) -> None:
        self.code = library.tracker[info.symbol]
        self._name, self._info, self._library, self._pool = name, info, library, pool
        arrays = [ctypes.c_void_p] * len(info.dtypes)
        scalars = [ctypes.c_int64] * info.num_scalars
        self._call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *arrays, *scalars)(self.code)

    def __call__(self, *args: Any) -> None:
        info, count = self._info, len(self._info.dtypes)
        arrays, scalars = args[:count], args[count:]
        inputs = count - info.num_outputs
        right = len(args) == count + info.num_scalars and all(
            type(a) is np.ndarray
            and a.dtype == dtype
            and a.flags.c_contiguous
            and a.flags.aligned
            and (k < inputs or a.flags.writeable)
            for k, (a, dtype) in enumerate(zip(arrays, info.dtypes, strict=False))
        )
        if not right:
            raise TypeError(_needs(self._name, info))
        self._call(self._pool, *(a.ctypes.data for a in arrays), *map(operator.index, scalars))


def _needs(name: str, info: KernelInfo) -> str:
    inputs = len(info.dtypes) - info.num_outputs
    wanted = [f"{dtype}[]" for dtype in info.dtypes[:inputs]]
    wanted += [f"writeable {dtype}[]" for dtype in info.dtypes[inputs:]]
    wanted += ["int"] * info.num_scalars
    return f"{name}({', '.join(wanted)}) needs these arguments, arrays C-contiguous and aligned"
