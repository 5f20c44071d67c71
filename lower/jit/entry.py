"""The machine code that Python calls: it converts Python objects to the arguments of kernels.

It is one CPython vectorcall function for all kernels; its ``self`` is an integer, the address of a
`descriptor` of the kernel to call.  Addresses are read from the structs of numpy's arrays, so it is
used only if `layout_is_known`.
"""

import ctypes
import sys
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from relax_egraph.errors import ArgumentError
from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.instructions import Operand, Value
from relax_egraph.lower.emit.module_text import I8, I32, I64, PTR, Module, Type
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.jit.compiled import KernelInfo

SYMBOL = "enter"

MOST_ARGUMENTS = 24
"""The maximal number of arguments of a kernel that is called this way."""

# The offsets of fields of an array and of its dtype, and the bits of its flags.
_TYPE, _DATA, _DTYPE, _FLAGS = 8, 16, 56, 64
_BYTE_ORDER, _NUMBER = 26, 28
_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x1, 0x100, 0x400
_FOREIGN_ORDER = ord(">" if sys.byteorder == "little" else "<")

# The words of a descriptor, before the dtype number and the required flags of each array.
_KERNEL, _POOL, _ARRAYS, _INTEGERS, _MESSAGE, _ARRAY_TYPE, _REFUSAL, _NONE, _EXPECTED = range(9)

Descriptor: TypeAlias = "ctypes.Array[ctypes.c_int64]"


def descriptor(address: int, info: KernelInfo, pool: int, message: int) -> Descriptor:
    """The descriptor of the kernel at `address`, which may use the threads of `pool`.

    `message` is the address of the text of the `ArgumentError` for wrong arguments.
    """
    words = [address, pool, len(info.dtypes), info.num_scalars, message]
    words += [id(np.ndarray), id(ArgumentError), id(None)]
    inputs = len(info.dtypes) - info.num_outputs
    for number, dtype in enumerate(info.dtypes):
        writeable = _WRITEABLE if number >= inputs else 0
        words += [np.dtype(dtype).num, _CONTIGUOUS | _ALIGNED | writeable]
    return (ctypes.c_int64 * len(words))(*words)


def entry_module(target: Target) -> Module:
    """The module of ``PyObject *enter(self, args, count)``."""
    module = Module(target)
    f = Function(module, SYMBOL, (PTR, PTR, I64), result=PTR)
    self, args, count = f.args
    answer, refused = f.allocate(PTR, 1), f.allocate(I64, 1)
    values = f.allocate(I64, MOST_ARGUMENTS)
    f.store(f.const(PTR, 0), answer)
    f.store(f.const(I64, 0), refused)
    for k in range(MOST_ARGUMENTS):
        f.store(f.const(I64, 0), f.address(values, k, I64))
    words = f.call_value("PyLong_AsVoidPtr", PTR, self)
    arrays = _word(words, _ARRAYS)
    with f.either(f.compare("==", count, arrays + _word(words, _INTEGERS))) as (right, wrong):
        with right:
            _read_arrays(f, args, words, values, refused)
        with wrong:
            f.store(f.const(I64, 1), refused)
    with f.either(f.compare("==", f.load(refused, I64), 0)) as (right, wrong):
        with right:
            with f.loop(arrays, count) as turns:
                argument = f.load(f.address(args, turns.index, PTR), PTR)
                number = f.call_value("PyLong_AsLongLong", I64, argument)
                f.store(number, f.address(values, turns.index, I64))
            failed = f.call_value("PyErr_Occurred", PTR)
            with f.either(f.compare("==", failed, f.const(PTR, 0))) as (integers, others):
                with integers:
                    status = _call(f, words, count, values)
                    with f.either(f.compare("==", status, 0)) as (done, exhausted):
                        with done:
                            none = _word(words, _NONE, PTR)
                            f.call("Py_IncRef", none)
                            f.store(none, answer)
                        with exhausted:
                            f.call_value("PyErr_NoMemory", PTR)
                with others:
                    _refuse(f, words)
        with wrong:
            _refuse(f, words)
    f.finish(f.load(answer, PTR))
    return module


def _read_arrays(f: Function, args: Value, words: Value, values: Value, refused: Value) -> None:
    """Store the data address of each array; set `refused` if an array does not fit."""
    with f.loop(0, _word(words, _ARRAYS)) as turns:
        argument = f.load(f.address(args, turns.index, PTR), PTR)
        is_array = f.compare("==", _field(argument, _TYPE, PTR), _word(words, _ARRAY_TYPE, PTR))
        with f.either(is_array) as (yes, no):
            with yes:
                place = turns.index * 2
                number, flags = (_word(words, place + (_EXPECTED + k)) for k in (0, 1))
                dtype = _field(argument, _DTYPE, PTR)
                present = f.convert("zext", _field(argument, _FLAGS, I32), I64)
                wrong = f.compare("!=", f.convert("zext", _field(dtype, _NUMBER, I32), I64), number)
                wrong = wrong | f.compare("!=", present & flags, flags)
                wrong = wrong | f.compare("==", _field(dtype, _BYTE_ORDER, I8), _FOREIGN_ORDER)
                with f.when(wrong):
                    f.store(f.const(I64, 1), refused)
                f.store(_field(argument, _DATA, I64), f.address(values, turns.index, I64))
            with no:
                f.store(f.const(I64, 1), refused)


def _refuse(f: Function, words: Value) -> None:
    f.call("PyErr_SetString", _word(words, _REFUSAL, PTR), _word(words, _MESSAGE, PTR))


def _call(f: Function, words: Value, count: Value, values: Value) -> Value:
    """Call the kernel without the interpreter's lock; returns its status.

    A kernel ignores arguments beyond its own, so two calls serve all kernels.
    """
    kernel, pool = _word(words, _KERNEL, PTR), _word(words, _POOL)
    state = f.call_value("PyEval_SaveThread", PTR)
    operands = [f.load(f.address(values, k, I64), I64) for k in range(MOST_ARGUMENTS)]
    status = f.allocate(I32, 1)
    with f.either(f.compare("<=", count, 5)) as (few, many):
        with few:
            f.store(f.call_kernel(kernel, pool, *operands[:5]), status)
        with many:
            f.store(f.call_kernel(kernel, pool, *operands), status)
    f.call("PyEval_RestoreThread", state)
    return f.load(status, I32)


def _word(words: Value, number: Operand, type: Type = I64) -> Value:
    f = words.function
    return f.load(f.address(words, number, I64), type)


def _field(of: Value, offset: int, type: Type) -> Value:
    f = of.function
    return f.load(f.address(of, offset, I8), type)


@cache
def layout_is_known() -> bool:
    """Whether this interpreter and this numpy have the object layout that the entry expects."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    whole = np.zeros((3, 4), np.float32)
    fixed = np.zeros(3, np.int8)
    fixed.setflags(write=False)
    samples = [whole, whole[:, 1:], whole.T, fixed, np.zeros(2, ">f8"), np.zeros((), bool)]
    return all(_reads_right(sample) for sample in samples)


def _reads_right(array: "np.ndarray[Any, Any]") -> bool:
    place = id(array)
    dtype = id(array.dtype)
    if ctypes.c_void_p.from_address(place + _TYPE).value != id(np.ndarray):
        return False
    if ctypes.c_void_p.from_address(place + _DTYPE).value != dtype:
        return False
    flags = ctypes.c_int32.from_address(place + _FLAGS).value
    return (
        ctypes.c_void_p.from_address(place + _DATA).value == array.ctypes.data
        and ctypes.c_int32.from_address(dtype + _NUMBER).value == array.dtype.num
        and ctypes.c_char.from_address(dtype + _BYTE_ORDER).value == array.dtype.byteorder.encode()
        and bool(flags & _CONTIGUOUS) == array.flags.c_contiguous
        and bool(flags & _ALIGNED) == array.flags.aligned
        and bool(flags & _WRITEABLE) == array.flags.writeable
    )
