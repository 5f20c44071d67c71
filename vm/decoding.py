"""Decoding of bytecode into the form that the interpreter runs.

A function becomes a list of tuples whose operands are indices into one frame: registers, then the
constants that its code mentions.  A call of a packed function costs one gather, one call and one
store.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from operator import itemgetter
from typing import Any, TypeAlias

from relax_egraph.errors import ExecutableError
from relax_egraph.vm.analysis import COPY, INVOKE_CLOSURE, tail_calls
from relax_egraph.vm.builtins import BUILTINS, Builtin, Packed
from relax_egraph.vm.bytecode import Call, Goto, If, Instruction, Kind, Operand, Ret
from relax_egraph.vm.executable import Executable, VMFunction
from relax_egraph.vm.printing import origin

Frame: TypeAlias = list[Any]
Gather: TypeAlias = Callable[[Frame], Sequence[Any]]

Decoded: TypeAlias = tuple[int, Any, Any, Any]
"""Opcode and operands, as commented at `Code`."""


class Code(IntEnum):
    """The opcode of a decoded instruction."""

    PACKED = 0  # callee, gather, dst
    FUNCTION = 1  # program, gather, dst
    TAIL = 2  # the same, replacing the caller
    INVOKE = 3  # -, gather, dst
    INVOKE_TAIL = 4
    RET = 5  # value
    IF = 6  # condition, target
    GOTO = 7  # target
    SEGMENT = 8  # segment
    PAUSE = 9  # hook, the instruction that it comes before


@dataclass(frozen=True, slots=True)
class CallSite:
    """Instruction `at` of `function`, a call of the packed function `callee`.

    `origin` is the name in the source of the value that it computes, if known.
    """

    function: str
    at: int
    callee: str
    origin: str


Around: TypeAlias = Callable[[CallSite, Packed], Packed]
"""Wraps the packed function of a call site."""


@dataclass(slots=True)
class Program:
    """A decoded function; each call copies `frame`."""

    function: VMFunction
    frame: Frame = field(default_factory=list[Any])
    code: list[Decoded] = field(default_factory=list[Decoded])


Caller: TypeAlias = tuple[Program, Frame, int, int, int]
"""A suspended call: the function, its registers, the instruction to resume at, the register of the
result, and the number of tail calls that led to the function."""

Hook: TypeAlias = Callable[[Program, Frame, int, int, Sequence[Caller]], None]
"""The hook of a pause: takes function, registers, instruction, tail calls and callers."""


@dataclass(frozen=True, slots=True)
class Decoder:
    """Decodes the functions of `executable`.

    `packed` maps the other names to packed functions; `vm_state` is passed where code passes the
    machine, and `as_value` turns a function into a value.  `around`, if present, wraps the packed
    function of each call site.
    """

    executable: Executable
    programs: Mapping[str, Program]
    packed: Mapping[str, Packed | Builtin]
    vm_state: object
    as_value: Callable[[Program], object]
    around: Around | None = None

    def decode(self, program: Program) -> None:
        """Fill in the code of `program`; raises `ExecutableError` for code that cannot run."""
        function = program.function
        values: list[Any] = [None] * (function.num_registers + 1)
        places: dict[Operand, int] = {}
        void = function.num_registers

        def place(operand: Operand) -> int:
            if operand.kind is Kind.REGISTER:
                return operand.value
            if operand not in places:
                places[operand] = len(values)
                values.append(self._value(operand))
            return places[operand]

        def emit(code: Code, a: Any, b: Any = None, c: Any = None) -> None:
            program.code.append((int(code), a, b, c))  # int: comparing members of an enum is slower

        instructions = self.executable.instructions(function)
        tails = self._tail_calls(instructions)
        for at, instruction in enumerate(instructions):
            match instruction:
                case Call(callee, args, dst):
                    target = void if dst.kind is Kind.VOID else dst.value
                    name = self.executable.callees[callee]
                    if name in self.programs or name == INVOKE_CLOSURE:
                        called = self.programs.get(name)
                        if called:
                            _check_count(function, at, called.function, len(args))
                        else:
                            self._bind(name, args, at, function)
                        plain = (Code.FUNCTION, Code.TAIL)
                        kinds = plain if called else (Code.INVOKE, Code.INVOKE_TAIL)
                        kind = kinds[at in tails]
                        emit(kind, called, gather(list(map(place, args))), target)
                        continue
                    run, args = self._bind(name, args, at, function)
                    if self.around is not None:
                        source = origin(self.executable, function, at)
                        run = self.around(CallSite(function.name, at, name, source), run)
                    emit(Code.PACKED, run, gather([place(a) for a in args]), target)
                case Ret(value):
                    emit(Code.RET, place(value))
                case If(cond, false_offset):
                    emit(Code.IF, place(cond), at + false_offset)
                case Goto(offset):
                    emit(Code.GOTO, at + offset)
        program.frame = values

    def _tail_calls(self, code: Sequence[Instruction]) -> frozenset[int]:
        if self.packed.get(COPY, BUILTINS[COPY]) is not BUILTINS[COPY]:  # the user's own copy
            return frozenset()
        return tail_calls(self.executable, code)

    def _bind(
        self, name: str, args: tuple[Operand, ...], at: int, function: VMFunction
    ) -> tuple[Packed, tuple[Operand, ...]]:
        """The callable, and the operands that it takes at run time."""
        callee = self.packed[name]
        if not isinstance(callee, Builtin):
            return callee, args
        constants = args[callee.dynamic :]
        where = f"section code: function {function.name!r}: instruction {at}: {name}"
        try:
            callee.check_count(len(args))
            if any(a.kind not in (Kind.IMMEDIATE, Kind.CONSTANT) for a in constants):
                raise ExecutableError(f"takes constants after operand {callee.dynamic}")
            return callee.bind(*map(self._value, constants)), args[: callee.dynamic]
        except (TypeError, AttributeError, ValueError) as error:
            message = str(error).removeprefix("section code: ")
            raise ExecutableError(f"{where}: {message}") from None

    def _value(self, operand: Operand) -> Any:
        match operand.kind:
            case Kind.IMMEDIATE:
                return operand.value
            case Kind.CONSTANT:
                return self.executable.constants[operand.value]
            case Kind.FUNCTION:
                name = self.executable.callees[operand.value]
                if name in self.programs:
                    return self.as_value(self.programs[name])
                callee = self.packed[name]
                if not isinstance(callee, Builtin):
                    return callee
                if callee.constants:
                    raise ExecutableError(f"section code: {name} is no value: it takes constants")
                return callee.bind()
            case Kind.VM_STATE:
                return self.vm_state
            case Kind.VOID | Kind.REGISTER:
                return None


def gather(places: Sequence[int]) -> Gather:
    """``frame -> [frame[i] for i in places]``, in one call of C code."""
    if len(places) > 1:
        return itemgetter(*places)
    return itemgetter(slice(places[0], places[0] + 1) if places else slice(0, 0))


def _check_count(function: VMFunction, at: int, called: VMFunction, count: int) -> None:
    if count != len(called.params):
        raise ExecutableError(
            f"section code: function {function.name!r}: instruction {at}: "
            f"{called.name} takes {len(called.params)} arguments, got {count}"
        )
