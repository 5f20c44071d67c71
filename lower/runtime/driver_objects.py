"""What the driver calls: memory for a call, arrays of results, tuples.  See `driver`.

Arrays are made by numpy's C functions and read through the layout of their structs.
"""

import sys
from enum import IntEnum

from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.instructions import Operand, Value
from relax_egraph.lower.emit.module_text import I8, I32, I64, PTR, Module, Type

LIMIT = 1 << 28
"""An arena of more bytes than these is given back after the call that needed it."""

POOLED = 1 << 16
"""Arrays of so many bytes or more lie in memory of the machine's pool, got by a call of Python."""


# Where the fields of an array lie; what its flags mean.
TYPE, DATA, RANK, EXTENTS, DTYPE, FLAGS = 8, 16, 24, 32, 56, 64
BYTE_ORDER, NUMBER = 26, 28  # of a dtype
FOREIGN_ORDER = ord(">" if sys.byteorder == "little" else "<")
CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400


class Head(IntEnum):
    """The words at the head of a program."""

    CODE = 0
    FALLBACK = 1  # takes the calls that leave the program; none: these return None
    ARGUMENTS = 2  # how many
    FRAME = 3  # the words of a frame, as they are at first: TEMPLATE words that lie there
    TEMPLATE = 4
    OBJECTS = 5  # so many of them, the last ones before those of ARENAS, are objects
    FREE = 6  # the list of records that no call uses
    RECORDS = 7  # how many there are
    ARENAS = 8  # how many each has: the last words of its frame are their addresses and sizes
    TAKE = 9  # bytes of the machine's pool, as an array
    ARRAY_TYPE = 10
    INT_TYPE = 11
    LIST_TYPE = 12
    NEW_ARRAY = 13  # PyArray_NewFromDescr
    SET_BASE = 14  # PyArray_SetBaseObject
    NONE = 15
    EXCEPTION = 16
    BYTES = 17  # of all arenas
    TUPLE_TYPE = 18


class Record(IntEnum):
    """The words of a record; the frame follows."""

    NEXT = 0
    FRAME = 1


class Arena(IntEnum):
    """The words of an arena, the last ones of a frame."""

    MEMORY = 0
    CAPACITY = 1


def word(pointer: Value, number: Operand, type: Type = I64) -> Value:
    """Word `number` of those at `pointer`."""
    return pointer.function.load(pointer.function.address(pointer, number, I64), type)


def set_word(pointer: Value, number: Operand, value: Value) -> None:
    """Write word `number` of those at `pointer`."""
    pointer.function.store(value, pointer.function.address(pointer, number, I64))


def field(of: Value, offset: int, type: Type) -> Value:
    """The field of an object that lies `offset` bytes from its beginning."""
    return of.function.load(of.function.address(of, offset, I8), type)


def is_null(pointer: Value) -> Value:
    """Whether `pointer` is null."""
    return pointer.function.compare("==", pointer, pointer.function.const(PTR, 0))


def define(module: Module) -> None:
    """Write the functions that the driver calls, and those that the loader does."""
    _define_new_record(module)
    _define_arena(module)
    _define_shrink(module)
    _define_shrink_all(module)
    _define_forget(module)
    _define_bytes(module)
    _define_view(module)
    _define_result(module)


def _define_new_record(module: Module) -> None:
    """``new_record(head)``: a record with its frame; null where there is no memory."""
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
    """``arena(head, arena, size, spare)``: so many bytes at least, on a 64-byte line; or null.

    What was in it before is lost.  An arena that grows again grows by `spare` bytes more.
    """
    f = Function(module, "arena", (PTR, PTR, I64, I64), result=PTR, internal=True)
    head, arena, needed, spare = f.args
    size = f.maximum(needed, 64)
    before = word(arena, Arena.CAPACITY)
    with f.when(f.compare(">", size, before)):
        f.call("shrink", head, arena, f.const(I64, 0))
        wanted = size + f.select(f.compare(">", before, 0), spare, 0)
        fits = f.compare("<", wanted, (1 << 62) - 64)
        asked = f.select(fits, wanted + 63, f.const(I64, -1))
        memory = f.call_value("PyMem_RawMalloc", PTR, asked)
        with f.when(f.compare("!=", memory, f.const(PTR, 0))):
            set_word(arena, Arena.MEMORY, memory)
            set_word(arena, Arena.CAPACITY, wanted)
            _count_bytes(head, wanted)
    aligned = (word(arena, Arena.MEMORY) + 63) & -64
    f.finish(f.emit(PTR, f"inttoptr {aligned} to ptr"))


def _define_shrink(module: Module) -> None:
    """``shrink(head, arena, limit)``: give an arena back if it is of more than `limit` bytes."""
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
    """Arenas have `size` bytes more; loops get theirs without the interpreter's lock."""
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
    """``forget(head)``: free all records; no call is under way, and none follows."""
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
    """``bytes(head, size)``: at least so many bytes of the machine's pool, as an array; or null."""
    f = Function(module, "bytes", (PTR, I64), result=PTR, internal=True)
    head, size = f.args
    answer = f.allocate(PTR, 1)
    f.store(f.const(PTR, 0), answer)
    number = f.call_value("PyLong_FromLongLong", PTR, size)
    with f.when(f.compare("!=", number, f.const(PTR, 0))):
        made = f.call_value("PyObject_CallOneArg", PTR, word(head, Head.TAKE, PTR), number)
        f.store(made, answer)
        f.call("Py_DecRef", number)
    f.finish(f.load(answer, PTR))


def _define_view(module: Module) -> None:
    """``view(head, base, dtype, rank, extents, data, flags)``: an array in memory of `base`."""
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
    f.call("Py_IncRef", dtype)  # a reference is taken over
    new, type = word(head, Head.NEW_ARRAY, PTR), word(head, Head.ARRAY_TYPE, PTR)
    count, bits = f.convert("trunc", rank, I32), f.convert("trunc", flags, I32)
    none = f.const(PTR, 0)
    given = f"{type}, {dtype}, {count}, {extents}, {none}, {data}, {bits}, {none}"
    return f.emit(PTR, f"call ptr {new.text}({given})")
