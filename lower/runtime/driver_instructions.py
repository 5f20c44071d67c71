"""The code of each instruction of native programs.  See `driver`."""

from collections.abc import Callable
from functools import partial

from relax_egraph.lower.emit.instructions import Operand, Value
from relax_egraph.lower.emit.module_text import I1, I8, I32, I64, PTR, Type
from relax_egraph.lower.runtime.driver_function import DriverFunction
from relax_egraph.lower.runtime.driver_objects import (
    ALIGNED,
    BYTE_ORDER,
    CONTIGUOUS,
    DATA,
    DTYPE,
    EXTENTS,
    FLAGS,
    FOREIGN_ORDER,
    NUMBER,
    RANK,
    WRITEABLE,
    Arena,
    Head,
    field,
    is_null,
    set_word,
    word,
)
from relax_egraph.vm.native.program import Op

KERNELS = {6: len(Op), 12: len(Op) + 1, 25: len(Op) + 2}
"""The opcodes of kernel calls, by the number of arguments that are passed, including the pool.

A kernel ignores arguments beyond its own, so three opcodes serve all kernels.
"""


class Instructions(DriverFunction):
    """Writes the code block of each instruction."""

    def instructions(self) -> None:
        """Write the dispatch loop and all blocks."""
        handlers: dict[int, Callable[[Value], None]] = {
            Op.ARRAY: self._array,
            Op.EXTENTS: self._extents,
            Op.INTEGER: self._integer,
            Op.PLAIN: self._plain,
            Op.ITEM: self._item,
            Op.ADD: lambda at: self._overflowing(at, "sadd"),
            Op.MULTIPLY: lambda at: self._overflowing(at, "smul"),
            Op.FLOORDIV: lambda at: self._number(at, self._floor_divide(at)[0]),
            Op.MOD: lambda at: self._number(at, self._floor_divide(at)[1]),
            Op.MIN: lambda at: self._number(at, self.minimum(self._from(at, 2), self._from(at, 3))),
            Op.MAX: lambda at: self._number(at, self.maximum(self._from(at, 2), self._from(at, 3))),
            Op.ALIGN: self._align,
            Op.EQUAL: lambda at: self._check(at, "=="),
            Op.AT_MOST: lambda at: self._check(at, "<="),
            Op.ARENA: self._arena,
            Op.RESULT: self._result,
            Op.STORAGE: self._storage,
            Op.ARGUMENT: lambda at: self._keep(at, self._argument(at, 2)),
            Op.CONSTANT: lambda at: self._keep(at, word(at, 2, PTR)),
            Op.VIEW: self._view,
            Op.NUMBER: self._int,
            Op.TUPLE: lambda at: self._sequence(at, "PyTuple"),
            Op.LIST: lambda at: self._sequence(at, "PyList"),
            Op.STORE: self._store,
            Op.TRUTH: self._truth,
            Op.RELEASE: self._release,
            Op.ACQUIRE: self._acquire,
            Op.RETURN: self._return,
            Op.JUMP: self._jump,
            Op.UNLESS: self._unless,
            Op.UNLESS_AT_MOST: self._unless_at_most,
            Op.NEXT_ARENA: self._next_arena,
            Op.MOVE: self._move,
            Op.COPY: self._copy,
            Op.TURN: self._turn,
            Op.FIELDS: self._fields,
            Op.LEAVE: lambda _: self.go("refused"),
        }
        for count, op in KERNELS.items():
            handlers[op] = partial(self._kernel, count)
        self._open("next")
        at = self.load(self.at, PTR)
        cases = " ".join(f"i64 {int(op)}, label %op{int(op)}" for op in handlers)
        self.line(f"switch {word(at, 0)}, label %refused [ {cases} ]")
        for op, handler in handlers.items():
            self._open(f"op{int(op)}")
            handler(at)

    # --- arguments --------------------------------------------------------------------

    def _array_dtype(self, array: Value, flags: Operand) -> Value:
        """The dtype of `array`; leaves the program unless it is an array with `flags`."""
        self._require(self._is_type(array, Head.ARRAY_TYPE))
        present = self.convert("zext", field(array, FLAGS, I32), I64)
        self._require(self.compare("==", present & flags, flags))
        dtype = field(array, DTYPE, PTR)
        self._refuse_if(self.compare("==", field(dtype, BYTE_ORDER, I8), FOREIGN_ORDER))
        return dtype

    def _array(self, at: Value) -> None:
        array = self._argument(at, 2)
        dtype = self._array_dtype(array, word(at, 4))
        number = self.convert("sext", field(dtype, NUMBER, I32), I64)
        self._require(self.compare("==", number, word(at, 3)))
        self._to(at, 1, field(array, DATA, I64))
        self._next(at, 5)

    def _plain(self, at: Value) -> None:
        self._array_dtype(self._argument(at, 1), CONTIGUOUS | ALIGNED)
        self._next(at, 2)

    def _extents(self, at: Value) -> None:
        array, rank = self._argument(at, 2), word(at, 3)
        actual = self.convert("sext", field(array, RANK, I32), I64)
        self._require(self.compare("==", actual, rank))
        extents = field(array, EXTENTS, PTR)
        to = self.address(self.frame, word(at, 1), I64)
        with self.loop(0, rank) as turns:
            set_word(to, turns.index, word(extents, turns.index))
        self._next(at, 4)

    def _long(self, at: Value, value: Value) -> None:
        """Write the value of a Python int; leave if it is another object or exceeds 64 bits."""
        self._require(self._is_type(value, Head.INT_TYPE))
        number = self.call_value("PyLong_AsLongLong", I64, value)
        self._require(is_null(self.call_value("PyErr_Occurred", PTR)))
        self._to(at, 1, number)

    def _integer(self, at: Value) -> None:
        self._long(at, self._argument(at, 2))
        self._next(at, 3)

    def _item(self, at: Value) -> None:
        heap = self._argument(at, 2)
        self._require(self._is_type(heap, Head.LIST_TYPE))
        item = self.call_value("PyList_GetItem", PTR, heap, word(at, 3))
        self._refuse_if(is_null(item))
        self._long(at, item)
        self._next(at, 4)

    def _fields(self, at: Value) -> None:
        value, count = self._argument(at, 2), word(at, 3)
        self._require(self._is_type(value, Head.TUPLE_TYPE))
        self._require(self.compare("==", self.call_value("PyTuple_Size", I64, value), count))
        to = self.address(self.frame, word(at, 1), I64)
        with self.loop(0, count) as turns:
            item = self.call_value("PyTuple_GetItem", PTR, value, turns.index)
            set_word(to, turns.index, item)
        self._next(at, 4)

    # --- numbers ----------------------------------------------------------------------

    def _number(self, at: Value, number: Value) -> None:
        self._to(at, 1, number)
        self._next(at, 4)

    def _exact(self, operation: str, a: Value, b: Operand) -> Value:
        """The sum or product; leaves the program on overflow."""
        name, pair = f"llvm.{operation}.with.overflow.i64", Type("{i64, i1}")
        both = self.call_value(name, pair, a, self.index(b))
        self._refuse_if(self.emit(I1, f"extractvalue {both}, 1"))
        return self.emit(I64, f"extractvalue {both}, 0")

    def _overflowing(self, at: Value, operation: str) -> None:
        self._number(at, self._exact(operation, self._from(at, 2), self._from(at, 3)))

    def _floor_divide(self, at: Value) -> tuple[Value, Value]:
        """Quotient and remainder towards minus infinity; leaves unless the divisor is positive."""
        a, b = self._from(at, 2), self._from(at, 3)
        self._require(self.compare(">", b, 0))
        quotient, remainder = self.binary("sdiv", a, b), self.binary("srem", a, b)
        below = self.compare("<", remainder, 0)
        return (
            self.select(below, quotient - 1, quotient),
            self.select(below, remainder + b, remainder),
        )

    def _align(self, at: Value) -> None:
        self._to(at, 1, self._exact("sadd", self._from(at, 2), 63) & -64)
        self._next(at, 3)

    def _check(self, at: Value, kind: str) -> None:
        self._require(self.compare(kind, self._from(at, 1), self._from(at, 2)))
        self._next(at, 3)

    # --- memory and objects -----------------------------------------------------------

    def _arenas(self, at: Value) -> tuple[Value, Value]:
        """The arena that the instruction names, and the next one."""
        end = word(self.head, Head.FRAME)
        start = end + (word(at, 2) - word(self.head, Head.ARENAS)) * len(Arena)
        arena = self.address(self.frame, start, I64)
        return arena, self.address(arena, len(Arena), I64)

    def _arena(self, at: Value) -> None:
        arena, _ = self._arenas(at)
        spare = self.const(I64, 0)
        memory = self.call_value("arena", PTR, self.head, arena, self._from(at, 3), spare)
        self._keep_new(at, 1, memory)
        self._next(at, 4)

    def _next_arena(self, at: Value) -> None:
        """Swap two arenas and grow the one that was not used last, beyond what is needed."""
        arena, other = self._arenas(at)
        for number in Arena:
            last, next = word(arena, number), word(other, number)
            set_word(arena, number, next)
            set_word(other, number, last)
        size = self._from(at, 3)
        spare = self.binary(">>", size, 1)
        self._keep_new(at, 1, self.call_value("arena", PTR, self.head, arena, size, spare))
        self._next(at, 4)

    def _move(self, at: Value) -> None:
        self._to(at, 1, self._from(at, 2))
        self._next(at, 3)

    def _copy(self, at: Value) -> None:
        to, source, size = self._from(at, 1, PTR), self._from(at, 2, PTR), self._from(at, 3)
        self.call_value("memmove", PTR, to, source, size)
        self._next(at, 4)

    def _words(self, at: Value, rank: Value) -> Value:
        """The words of the frame at the indices from operand 6 on, copied one after the other."""
        operands = self.address(at, 6, I64)
        with self.loop(0, rank) as turns:
            set_word(self._room, turns.index, self._from(operands, turns.index))
        return self._room

    def _result(self, at: Value) -> None:
        dtype, size, rank = word(at, 3, PTR), self._from(at, 4), word(at, 5)
        extents = self._words(at, rank)
        array = self.call_value("result", PTR, self.head, dtype, size, rank, extents)
        self._keep_new(at, 1, array)
        self._to(at, 2, field(array, DATA, I64))
        self._next(at, rank + 6)

    def _storage(self, at: Value) -> None:
        array = self.call_value("bytes", PTR, self.head, self._from(at, 3))
        self._keep_new(at, 1, array)
        self._to(at, 2, field(array, DATA, I64))
        self._next(at, 4)

    def _view(self, at: Value) -> None:
        base, dtype, data = self._from(at, 2, PTR), word(at, 3, PTR), self._from(at, 4, PTR)
        rank = word(at, 5)
        extents = self._words(at, rank)
        flags = self.convert("zext", field(base, FLAGS, I32), I64)
        flags = (flags & WRITEABLE) + (CONTIGUOUS | ALIGNED)
        operands = (self.head, base, dtype, rank, extents, data, flags)
        self._keep_new(at, 1, self.call_value("view", PTR, *operands))
        self._next(at, rank + 6)

    def _keep(self, at: Value, existing: Value) -> None:
        """Keep an object that exists already, with a new reference."""
        self.call("Py_IncRef", existing)
        self._to(at, 1, existing)
        self._next(at, 3)

    def _int(self, at: Value) -> None:
        self._keep_new(at, 1, self.call_value("PyLong_FromLongLong", PTR, self._from(at, 2)))
        self._next(at, 3)

    def _truth(self, at: Value) -> None:
        byte = self.load(self._from(at, 2, PTR), I8)
        truth = self.convert("zext", byte, I64)
        self._keep_new(at, 1, self.call_value("PyBool_FromLong", PTR, truth))
        self._next(at, 3)

    def _sequence(self, at: Value, type: str) -> None:
        count = word(at, 2)
        sequence = self.call_value(f"{type}_New", PTR, count)
        self._keep_new(at, 1, sequence)
        objects = self.address(at, 3, I64)
        with self.loop(0, count) as turns:
            item = self._from(objects, turns.index, PTR)
            self.call("Py_IncRef", item)  # SetItem takes over a reference
            self.call_value(f"{type}_SetItem", I32, sequence, turns.index, item)
        self._next(at, count + 3)

    def _store(self, at: Value) -> None:
        heap, item = self._argument(at, 1), self._from(at, 3, PTR)
        self._require(self._is_type(heap, Head.LIST_TYPE))
        self.call("Py_IncRef", item)
        failed = self.call_value("PyList_SetItem", I32, heap, word(at, 2), item)
        self._refuse_if(self.compare("!=", failed, 0))
        self._next(at, 4)

    # --- kernels ----------------------------------------------------------------------

    def _turn(self, at: Value) -> None:
        """Jump back; check for signals once a second, so that any loop can be interrupted."""
        on_windows = self.module.target.system == "win32"
        time = "_time64" if on_windows else "time"
        now = self.call_value(time, I64, self.const(PTR, 0))
        with self.when(self.compare("!=", now, self.load(self.second, I64))):
            self.store(now, self.second)
            self.call("PyEval_RestoreThread", self.load(self.state, PTR))
            failed = self.call_value("PyErr_CheckSignals", I32)
            self.store(self.const(PTR, 0), self.answer)
            self.go_if(self.compare("!=", failed, 0), "leave")
            self.store(self.call_value("PyEval_SaveThread", PTR), self.state)
        self._jump(at)

    def _release(self, at: Value) -> None:
        self.store(self.call_value("PyEval_SaveThread", PTR), self.state)
        self._next(at, 1)

    def _acquire(self, at: Value) -> None:
        self.call("PyEval_RestoreThread", self.load(self.state, PTR))
        self.store(self.const(PTR, 0), self.state)
        self._next(at, 1)

    def _kernel(self, count: int, at: Value) -> None:
        """Call a kernel with its pool and ``count - 1`` words of the frame."""
        code, pool = word(at, 1, PTR), word(at, 2)
        operands = (self._from(at, 3 + k) for k in range(count - 1))
        status = self.call_kernel(code, pool, *operands)
        self.go_if(self.compare("!=", status, 0), "exhausted")
        self._next(at, count + 2)

    def _return(self, at: Value) -> None:
        answer = self._from(at, 1, PTR)
        self.call("Py_IncRef", answer)
        self.store(answer, self.answer)
        self.go("leave")

    def _jump(self, at: Value) -> None:
        code = word(self.head, Head.CODE, PTR)
        self.store(self.address(code, word(at, 1), I64), self.at)
        self.go("next")

    def _jump_if(self, at: Value, condition: Value, length: int) -> None:
        """Jump if `condition` holds, else continue `length` words further."""
        stay, jump = self._label(), self._label()
        self._branch(condition, jump, stay)
        self._open(jump)
        self._jump(at)
        self._open(stay)
        self._next(at, length)

    def _unless(self, at: Value) -> None:
        byte = self.load(self._from(at, 2, PTR), I8)
        self._jump_if(at, self.compare("==", byte, 0), 3)

    def _unless_at_most(self, at: Value) -> None:
        self._jump_if(at, self.compare(">", self._from(at, 2), self._from(at, 3)), 4)
