"""The `Driver` of the virtual machine: loads native programs into this process."""

import ctypes
import importlib
from collections.abc import Callable
from functools import cache, partial
from itertools import accumulate, chain
from typing import Any

import numpy as np

from relax_egraph.lower.emit.target import host
from relax_egraph.lower.jit.entry import layout_is_known
from relax_egraph.lower.jit.library import Library, unseen
from relax_egraph.lower.jit.linking import (
    FASTCALL,
    KEYWORDS,
    Handle,
    builtin,
    code_of,
    load,
)
from relax_egraph.lower.jit.machine_code import cached_object
from relax_egraph.lower.jit.object_cache import default_cache
from relax_egraph.lower.runtime.driver import FORGET, SYMBOL, driver_module
from relax_egraph.lower.runtime.driver_instructions import KERNELS
from relax_egraph.lower.runtime.driver_objects import (
    ALIGNED,
    CONTIGUOUS,
    WRITEABLE,
    Arena,
    Head,
)
from relax_egraph.vm.native.program import (
    OPERANDS,
    Address,
    Driver,
    KernelType,
    NativeInstruction,
    NativeProgram,
    Op,
    Operand,
    Surroundings,
    operand_kinds,
)

_NEW_FROM_DESCR, _SET_BASE_OBJECT = 94, 282
"""The indices of these functions in numpy's C API table, part of its stable binary interface."""


def driver() -> Driver | None:
    """The driver, on interpreters whose object layout is known."""
    return _NativeDriver() if layout_is_known() else None


def memory_of(function: Callable[..., Any]) -> tuple[int, int]:
    """The number of records of a loaded program, and the bytes of their arenas."""
    handle = getattr(function, "__self__", None)
    if not isinstance(handle, _ProgramHandle):
        raise TypeError(f"{function!r} is no loaded program")
    return handle.head[Head.RECORDS], handle.head[Head.BYTES]


class _ProgramHandle(Handle):
    head: "ctypes.Array[ctypes.c_int64]"


class _Records:
    """The records of a program: memory that its calls share, freed with this object."""

    def __init__(self, head: "ctypes.Array[ctypes.c_int64]", library: Library) -> None:
        self._head, self._library = head, library
        forget = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(library.tracker[FORGET])
        self._forget = partial(forget, ctypes.addressof(head))

    def __del__(self) -> None:
        self._forget()


class _NativeDriver:
    """The implementation of `Driver`."""

    def kernel_type(self, kernel: Callable[..., Any]) -> KernelType | None:
        code = code_of(kernel)
        if code is None:
            return None
        return KernelType(code.info.dtypes, code.info.num_outputs, code.info.num_scalars)

    def load(
        self,
        program: NativeProgram,
        surroundings: Surroundings,
        fallback: Callable[..., Any] | None,
    ) -> Callable[..., Any]:
        library = _library()
        alive: list[object] = [surroundings, fallback]
        code = [_words(i, surroundings, alive) for i in program.code]
        places = [0, *accumulate(map(len, code))]
        for instruction, written in zip(program.code, code, strict=True):
            if operand_kinds(instruction)[:1] == ["instruction"]:
                written[1] = places[written[1]]
        words = (ctypes.c_int64 * places[-1])(*chain.from_iterable(code))
        frame = (
            ctypes.c_int64
            * (program.num_words + program.num_objects + len(Arena) * program.num_arenas)
        )()
        for place, value in program.constants:
            frame[place] = _constant(value, surroundings)
        table = _numpy_functions()
        head = (ctypes.c_int64 * len(Head))()
        head[Head.CODE] = ctypes.addressof(words)
        head[Head.FALLBACK] = 0 if fallback is None else id(fallback)
        head[Head.ARGUMENTS] = program.num_arguments
        head[Head.FRAME] = len(frame)
        head[Head.TEMPLATE] = ctypes.addressof(frame)
        head[Head.OBJECTS] = program.num_objects
        head[Head.ARENAS] = program.num_arenas
        head[Head.TAKE] = id(surroundings.allocate)
        types = {Head.ARRAY_TYPE: np.ndarray, Head.INT_TYPE: int}
        types |= {Head.LIST_TYPE: list, Head.TUPLE_TYPE: tuple}
        for place, known in types.items():
            head[place] = id(known)
        head[Head.NEW_ARRAY], head[Head.SET_BASE] = table[_NEW_FROM_DESCR], table[_SET_BASE_OBJECT]
        head[Head.NONE], head[Head.EXCEPTION] = id(None), id(Exception)
        handle = _ProgramHandle(ctypes.addressof(head))
        handle.head = head
        handle.kept = (words, frame, unseen(_Records(head, library)), *alive)
        return builtin(program.name, library, SYMBOL, handle, FASTCALL | KEYWORDS)


_loaded: list[Library] = []
"""Every driver that was loaded, so that none is collected before the records that it is to free.

Of two threads that load the first program at once, each may load a driver.
"""


@cache
def _library() -> Library:
    data = cached_object(str(driver_module(host())), host(), default_cache())
    _loaded.append(load([data], [SYMBOL, FORGET]))
    return _loaded[-1]


@cache
def _numpy_functions() -> "ctypes.Array[ctypes.c_int64]":
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    module = importlib.import_module("numpy._core._multiarray_umath")
    address = pointer(module._ARRAY_API, None)
    return (ctypes.c_int64 * (_SET_BASE_OBJECT + 1)).from_address(address)


def _words(
    instruction: NativeInstruction, surroundings: Surroundings, alive: list[object]
) -> list[int]:
    """The words of an instruction for the driver; adds the objects they address to `alive`."""
    match instruction:
        case NativeInstruction(Op.KERNEL, (str(name), *words)):
            kernel = surroundings.kernels[name]
            code = code_of(kernel)
            assert code is not None
            alive.append(kernel)
            count = next(n for n in KERNELS if n > len(words))
            rest = [0] * (count - 1 - len(words))
            return [KERNELS[count], code.address, code.pool, *map(int, words), *rest]
        case NativeInstruction(Op.ARRAY, (int(to), int(argument), str(element), writable)):
            flags = CONTIGUOUS | ALIGNED | (WRITEABLE if writable else 0)
            return [Op.ARRAY, to, argument, np.dtype(element).num, flags]
        case NativeInstruction(op, operands):
            kinds = operand_kinds(instruction)
            words = [_word(k, o, surroundings, alive) for k, o in zip(kinds, operands, strict=True)]
            fixed = OPERANDS[op].split()
            if fixed[-1:] == ["from…"]:
                words.insert(len(fixed) - 1, len(words) - len(fixed) + 1)
            return [op, *words]


def _word(kind: str, operand: Operand, surroundings: Surroundings, alive: list[object]) -> int:
    match kind, operand:
        case "element", str(name):
            value: object = np.dtype(name)
        case "constant", int(index):
            value = None if index == -1 else surroundings.constants[index]
        case _:
            return int(operand)
    alive.append(value)
    return id(value)


def _constant(value: int | Address, surroundings: Surroundings) -> int:
    if isinstance(value, int):
        return value
    return surroundings.constants[value.index].ctypes.data
