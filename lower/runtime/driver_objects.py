"""Functions that the driver calls: the memory of calls, and arrays of results.

Arrays are created by numpy's C functions and read through the layout of their structs.
"""

import sys
from enum import IntEnum

from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.instructions import Operand, Value
from relax_egraph.lower.emit.module_text import I8, I32, I64, PTR, Module, Type

LIMIT = 1 << 28
"""Arenas above this many bytes are freed after the call that needed them."""

POOLED = 1 << 16
"""Arrays of at least this many bytes are allocated from the machine's pool, by a Python call."""


# The offsets of the fields of an array, and the bits of its flags.
TYPE, DATA, RANK, EXTENTS, DTYPE, FLAGS = 8, 16, 24, 32, 56, 64
BYTE_ORDER, NUMBER = 26, 28  # of a dtype
FOREIGN_ORDER = ord(">" if sys.byteorder == "little" else "<")
CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400


class Head(IntEnum):
    """The words at the head of a program."""

    CODE = 0
    FALLBACK = 1  # called for calls that leave the program; null: they return None
    ARGUMENTS = 2  # their number
    FRAME = 3  # the number of words of a frame
    TEMPLATE = 4  # the initial words of a frame
    OBJECTS = 5  # the number of objects: the last words of a frame before those of ARENAS
    FREE = 6  # the list of unused records
    RECORDS = 7  # the number of records
    ARENAS = 8  # the number of arenas of a record: the last words of its frame
    TAKE = 9  # the function that allocates bytes of the machine's pool, as an array
    ARRAY_TYPE = 10
    INT_TYPE = 11
    LIST_TYPE = 12
    NEW_ARRAY = 13  # PyArray_NewFromDescr
    SET_BASE = 14  # PyArray_SetBaseObject
    NONE = 15
    EXCEPTION = 16
    BYTES = 17  # the size of all arenas
    TUPLE_TYPE = 18


class Record(IntEnum):
    """The words of a record; the frame follows."""

    NEXT = 0
    FRAME = 1


class Arena(IntEnum):
    """The words of an arena, at the end of a frame."""

    MEMORY = 0
    CAPACITY = 1


def word(pointer: Value, number: Operand, type: Type = I64) -> Value:
    """Word `number` at `pointer`."""
    return pointer.function.load(pointer.function.address(pointer, number, I64), type)


def set_word(pointer: Value, number: Operand, value: Value) -> None:
    """Write word `number` at `pointer`."""
    pointer.function.store(value, pointer.function.address(pointer, number, I64))


def field(of: Value, offset: int, type: Type) -> Value:
    """The field of an object at `offset` bytes from its start."""
    return of.function.load(of.function.address(of, offset, I8), type)


def is_null(pointer: Value) -> Value:
    """Whether `pointer` is null."""
    return pointer.function.compare("==", pointer, pointer.function.const(PTR, 0))


def define(module: Module) -> None:
    """Define the functions that the driver and the loader call."""
    _define_new_record(module)
    _define_arena(module)
    _define_shrink(module)
    _define_shrink_all(module)
    _define_forget(module)
    _define_bytes(module)
    _define_view(module)
    _define_result(module)


def _define_new_record(module: Module) -> None:
    """``new_record(head)``: a record with its frame; null if there is no memory."""
    f = Function(module, "new_record", (PTR,), result=PTR, internal=True)
    (head,) = f.args
    count = word(head, Head.FRAME)
    record = f.call_value("PyMem_RawMalloc", PTR, (count + int(Record.FRAME)) * 8)
    with f.when(f.compare("!=", record, f.const(PTR, 0))):
        set_word(record, Record.NEXT, f.const(I64, 0))
        template = word(head, Head.TEMPLATE, PTR)
        with f.loop(0, count) as turns:
            set_word(record, turns.index + int(Record.FRAME), word(template, turns.index))
        set_word(head, Head.RECORDS, word(head, Head.RECORDS) + 1)
    f.finish(record)


def _define_arena(module: Module) -> None:
    """``arena(head, arena, size, spare)``: at least `size` bytes, aligned to 64 bytes; or null.

    Its contents are lost.  An arena that grows again grows by `spare` bytes more.
    """
    f = Function(module, "arena", (PTR, PTR, I64, I64), result=PTR, internal=True)
    head, arena, needed, spare = f.args
    size = f.maximum(needed, 64)
    old = word(arena, Arena.CAPACITY)
    with f.when(f.compare(">", size, old)):
        f.call("shrink", head, arena, f.const(I64, 0))
        capacity = size + f.select(f.compare(">", old, 0), spare, 0)
        fits = f.compare("<", capacity, (1 << 62) - 64)
        request = f.select(fits, capacity + 63, f.const(I64, -1))
        memory = f.call_value("PyMem_RawMalloc", PTR, request)
        with f.when(f.compare("!=", memory, f.const(PTR, 0))):
            set_word(arena, Arena.MEMORY, memory)
            set_word(arena, Arena.CAPACITY, capacity)
            _count_bytes(head, capacity)
    aligned = (word(arena, Arena.MEMORY) + 63) & -64
    f.finish(f.emit(PTR, f"inttoptr {aligned} to ptr"))


def _define_shrink(module: Module) -> None:
    """``shrink(head, arena, limit)``: free an arena of more than `limit` bytes."""
    f = Function(module, "shrink", (PTR, PTR, I64), internal=True)
    head, arena, limit = f.args
    capacity = word(arena, Arena.CAPACITY)
    with f.when(f.compare(">", capacity, limit)):
        f.call("PyMem_RawFree", word(arena, Arena.MEMORY, PTR))
        set_word(arena, Arena.MEMORY, f.const(I64, 0))
        set_word(arena, Arena.CAPACITY, f.const(I64, 0))
        _count_bytes(head, f.const(I64, 0) - capacity)
    f.finish()


def _count_bytes(head: Value, size: Value) -> None:
    """Add `size` to the bytes of all arenas, atomically: loops grow theirs without the lock."""
    f = head.function
    f.emit(I64, f"atomicrmw add {f.address(head, Head.BYTES, I64)}, {size} monotonic")


def _define_shrink_all(module: Module) -> None:
    """``shrink_all(head, record, limit)``: `shrink` for each arena of a record."""
    f = Function(module, "shrink_all", (PTR, PTR, I64), internal=True)
    head, record, limit = f.args
    count = word(head, Head.ARENAS)
    end = f.address(record, word(head, Head.FRAME) + int(Record.FRAME), I64)
    with f.loop(0, count) as turns:
        arena = f.address(end, (turns.index - count) * len(Arena), I64)
        f.call("shrink", head, arena, limit)
    f.finish()


def _define_forget(module: Module) -> None:
    """``forget(head)``: free all records; no call is running, and none follows."""
    f = Function(module, "forget", (PTR,))
    (head,) = f.args
    with f.forever() as leave:
        record = word(head, Head.FREE, PTR)
        leave(is_null(record))
        set_word(head, Head.FREE, word(record, Record.NEXT))
        f.call("shrink_all", head, record, f.const(I64, 0))
        f.call("PyMem_RawFree", record)
    f.finish()


def _define_bytes(module: Module) -> None:
    """``bytes(head, size)``: at least `size` bytes of the machine's pool, as an array; or null."""
    f = Function(module, "bytes", (PTR, I64), result=PTR, internal=True)
    head, size = f.args
    answer = f.allocate(PTR, 1)
    f.store(f.const(PTR, 0), answer)
    number = f.call_value("PyLong_FromLongLong", PTR, size)
    with f.when(f.compare("!=", number, f.const(PTR, 0))):
        array = f.call_value("PyObject_CallOneArg", PTR, word(head, Head.TAKE, PTR), number)
        f.store(array, answer)
        f.call("Py_DecRef", number)
    f.finish(f.load(answer, PTR))


def _define_view(module: Module) -> None:
    """``view(head, base, dtype, rank, extents, data, flags)``: an array in the memory of `base`."""
    params = (PTR, PTR, PTR, I64, PTR, PTR, I64)
    f = Function(module, "view", params, result=PTR, internal=True)
    head, base, dtype, rank, extents, data, flags = f.args
    answer = f.allocate(PTR, 1)
    array = _new_array(head, dtype, rank, extents, data, flags)
    f.store(array, answer)
    with f.when(f.compare("!=", array, f.const(PTR, 0))):
        f.call("Py_IncRef", base)
        set_base = word(head, Head.SET_BASE, PTR)
        failed = f.emit(I32, f"call i32 {set_base.text}({array}, {base})")
        with f.when(f.compare("!=", failed, 0)):
            f.call("Py_DecRef", array)
            f.store(f.const(PTR, 0), answer)
    f.finish(f.load(answer, PTR))


def _define_result(module: Module) -> None:
    """``result(head, dtype, size, rank, extents)``: a new array of `size` bytes; or null."""
    f = Function(module, "result", (PTR, PTR, I64, I64, PTR), result=PTR, internal=True)
    head, dtype, size, rank, extents = f.args
    answer = f.allocate(PTR, 1)
    f.store(f.const(PTR, 0), answer)
    with f.either(f.compare("<", size, POOLED)) as (small, large):
        with small:
            null = f.const(PTR, 0)
            f.store(_new_array(head, dtype, rank, extents, null, f.const(I64, 0)), answer)
        with large:
            memory = f.call_value("bytes", PTR, head, size)
            with f.when(f.compare("!=", memory, f.const(PTR, 0))):
                flags = f.const(I64, CONTIGUOUS | ALIGNED | WRITEABLE)
                data = field(memory, DATA, PTR)
                array = f.call_value("view", PTR, head, memory, dtype, rank, extents, data, flags)
                f.store(array, answer)
                f.call("Py_DecRef", memory)
    f.finish(f.load(answer, PTR))


def _new_array(
    head: Value, dtype: Value, rank: Value, extents: Value, data: Value, flags: Value
) -> Value:
    f = head.function
    f.call("Py_IncRef", dtype)  # the array takes over a reference
    new, type = word(head, Head.NEW_ARRAY, PTR), word(head, Head.ARRAY_TYPE, PTR)
    count, bits = f.convert("trunc", rank, I32), f.convert("trunc", flags, I32)
    none = f.const(PTR, 0)
    operands = f"{type}, {dtype}, {count}, {extents}, {none}, {data}, {bits}, {none}"
    return f.emit(PTR, f"call ptr {new.text}({operands})")
