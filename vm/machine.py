"""The interpreter.

At load each function becomes a list of tuples whose operands are indices into one frame:
registers first, then the constants that its code mentions.  A call of a packed function then
costs one gather, one call and one store.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeAlias

from relax_egraph.errors import ExecutableError, RunError
from relax_egraph.vm.arguments import arrange, convert
from relax_egraph.vm.builtins import BUILTINS, Builtin, Packed, invoke_closure
from relax_egraph.vm.bytecode import Call, Goto, If, Instruction, Kind, Operand, Ret
from relax_egraph.vm.closure import Closure
from relax_egraph.vm.executable import Executable, VMFunction
from relax_egraph.vm.pool import StoragePool
from relax_egraph.vm.printing import instruction_text
from relax_egraph.vm.registry import registered
from relax_egraph.vm.storage import Bytes

Frame: TypeAlias = list[Any]

_PACKED, _FUNCTION, _TAIL, _INVOKE, _INVOKE_TAIL, _RET, _IF, _GOTO = range(8)

Decoded: TypeAlias = tuple[int, Any, Any, Any]
"""Opcode, then: callee, gather, dst · program, gather, dst · -, gather, dst · value · cond, target
· target."""

_COPY, _CALL_VALUE = "vm.builtin.copy", "vm.builtin.invoke_closure"

MAX_DEPTH = 10_000
"""Calls of functions within calls at most, unless the machine is told otherwise."""


@dataclass(slots=True)
class _Program:
    """A function, decoded: `frame` is copied for each call."""

    function: VMFunction
    frame: Frame
    code: list[Decoded]


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    """A function of `machine` as a value."""

    machine: "VirtualMachine"
    program: _Program

    def takes(self, given: int) -> None:
        """Raise `RunError` unless the function takes as many arguments as are `given`."""
        function = self.program.function
        if given != len(function.params):
            raise RunError(
                f"closure {function.name} takes {len(function.params)} arguments, got {given}"
            )

    def __call__(self, *args: Any) -> Any:
        self.takes(len(args))
        name = self.program.function.name
        return self.machine.run(self.program, [convert(f"an argument of {name}", a) for a in args])


class VirtualMachine:
    """Runs an executable: ``vm["main"](x, w)``, ``vm["main"](x, w=w)``.

    Arguments are numpy arrays or whatever has ``__dlpack__``; arrays that are not contiguous
    are copied, a dtype is never converted.  Results are numpy arrays, tuples of them, shapes
    (tuples of ints).

    A name that the code calls is looked for in `packed`, among the kernels of the executable,
    among the functions that were registered, among the builtins; `RunError` lists those that
    are nowhere.  The machine may be used from several threads, and after an exception.

    Kernels run on `num_threads` threads, the caller's among them, by default on as many as the
    process may use.  Results do not depend on the number.
    """

    def __init__(
        self,
        executable: Executable,
        packed: Mapping[str, Packed] | None = None,
        *,
        num_threads: int | None = None,
        max_depth: int = MAX_DEPTH,
    ) -> None:
        self._executable = executable
        self._max_depth = max_depth
        self._pool = StoragePool()
        self._programs = {f.name: _Program(f, [], []) for f in executable.functions}
        self._packed = _resolve(executable, packed or {}, num_threads)
        for program in self._programs.values():
            self._decode(program)

    @property
    def executable(self) -> Executable:
        """What this machine runs."""
        return self._executable

    def __contains__(self, name: object) -> bool:
        return name in self._programs

    def __getitem__(self, name: str) -> Callable[..., Any]:
        program = self._programs.get(name)
        if program is None or program.function.private:
            names = [n for n, p in self._programs.items() if not p.function.private]
            raise KeyError(f"no function {name!r} to call; there are: {', '.join(names) or 'none'}")

        def function(*args: Any, **named: Any) -> Any:
            return self.run(program, arrange(program.function, args, named))

        return function

    def allocate(self, size: int) -> Bytes:
        """Storage of at least `size` bytes, on a 64-byte line."""
        return self._pool.take(size)

    # --- running ----------------------------------------------------------------------

    def run(self, program: _Program, args: Sequence[Any]) -> Any:
        """Interpret a function on what `convert` made of its arguments.

        A call whose result is what the function returns takes the place of its caller, so that
        recursion in that position has no depth.
        """
        registers = program.frame.copy()
        registers[: len(args)] = args
        code, pc = program.code, 0
        callers: list[tuple[_Program, Frame, int, int]] = []
        try:
            while True:
                kind, a, b, c = code[pc]
                if kind == _PACKED:
                    registers[c] = a(*b(registers))
                    pc += 1
                elif kind == _FUNCTION:
                    if len(callers) >= self._max_depth:
                        raise RunError(f"more than {self._max_depth} calls within calls")
                    callers.append((program, registers, pc + 1, c))
                    args = b(registers)
                    program, pc = a, 0
                    code, registers = a.code, a.frame.copy()
                    registers[: len(args)] = args
                elif kind == _TAIL:
                    args = b(registers)
                    program, pc = a, 0
                    code, registers = a.code, a.frame.copy()
                    registers[: len(args)] = args
                elif kind in (_INVOKE, _INVOKE_TAIL):
                    called, args = _opened(b(registers))
                    if type(called) is not _Entry or called.machine is not self:
                        registers[c] = invoke_closure(called, *args)
                        pc += 1
                        continue
                    called.takes(len(args))
                    if kind == _INVOKE:
                        if len(callers) >= self._max_depth:
                            raise RunError(f"more than {self._max_depth} calls within calls")
                        callers.append((program, registers, pc + 1, c))
                    program, pc = called.program, 0
                    code, registers = program.code, program.frame.copy()
                    registers[: len(args)] = args
                elif kind == _RET:
                    value = registers[a]
                    if not callers:
                        return value
                    program, registers, pc, dst = callers.pop()
                    code = program.code
                    registers[dst] = value
                elif kind == _IF:
                    pc = pc + 1 if registers[a] else b
                else:
                    pc = a
        except Exception as error:
            at = self._executable.instructions(program.function)[pc]
            text = instruction_text(self._executable, at, pc)
            error.add_note(f"in function {program.function.name!r}, instruction {pc}: {text}")
            raise

    # --- loading ----------------------------------------------------------------------

    def _decode(self, program: _Program) -> None:
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

        instructions = self._executable.instructions(function)
        for at, instruction in enumerate(instructions):
            match instruction:
                case Call(callee, args, dst):
                    target = void if dst.kind is Kind.VOID else dst.value
                    name = self._executable.callees[callee]
                    if name in self._programs or name == _CALL_VALUE:
                        called = self._programs.get(name)
                        if called:
                            _check_count(program.function, at, called.function, len(args))
                        kinds = (_FUNCTION, _TAIL) if called else (_INVOKE, _INVOKE_TAIL)
                        kind = kinds[self._is_returned(instructions, at + 1, dst)]
                        program.code.append((kind, called, _gather(list(map(place, args))), target))
                        continue
                    run, args = self._bind(name, args, at, program.function)
                    gather = _gather([place(a) for a in args])
                    program.code.append((_PACKED, run, gather, target))
                case Ret(value):
                    program.code.append((_RET, place(value), None, None))
                case If(cond, false_offset):
                    program.code.append((_IF, place(cond), at + false_offset, None))
                case Goto(offset):
                    program.code.append((_GOTO, at + offset, None, None))
        program.frame = values

    def _is_returned(self, code: Sequence[Instruction], at: int, value: Operand) -> bool:
        """Whether `value` is returned from `at` on, with nothing but copies and jumps before."""
        if value.kind is Kind.VOID:
            return False
        for _ in code:
            match code[at]:
                case Ret(result):
                    return result == value
                case Goto(offset):
                    at += offset
                case Call(callee, args, dst) if self._executable.callees[
                    callee
                ] == _COPY and args == (value,):
                    at, value = at + 1, dst
                case _:
                    return False
        return False

    def _bind(
        self, name: str, args: tuple[Operand, ...], at: int, function: VMFunction
    ) -> tuple[Packed, tuple[Operand, ...]]:
        """The callable, and those of its operands that it takes at run time."""
        found = self._packed[name]
        if not isinstance(found, Builtin):
            return found, args
        constants = args[found.dynamic :]
        where = f"section code: function {function.name!r}: instruction {at}: {name}"
        if any(a.kind not in (Kind.IMMEDIATE, Kind.CONSTANT) for a in constants):
            raise ExecutableError(f"{where} takes constants after operand {found.dynamic}")
        try:
            return found.bind(*map(self._value, constants)), args[: found.dynamic]
        except (TypeError, AttributeError, ValueError) as error:
            message = str(error).removeprefix("section code: ")
            raise ExecutableError(f"{where}: {message}") from None

    def _value(self, operand: Operand) -> Any:
        match operand.kind:
            case Kind.IMMEDIATE:
                return operand.value
            case Kind.CONSTANT:
                return self._executable.constants[operand.value]
            case Kind.FUNCTION:
                name = self._executable.callees[operand.value]
                if name in self._programs:
                    return _Entry(self, self._programs[name])
                found = self._packed[name]
                if isinstance(found, Builtin):
                    raise ExecutableError(f"section code: {name} is no value: it takes constants")
                return found
            case Kind.VM_STATE:
                return self
            case Kind.VOID | Kind.REGISTER:
                return None


def _opened(called: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
    """The function that a value stands for, and all of its arguments."""
    function, *args = called
    if type(function) is Closure:
        return function.function, (*args, *function.captured)
    return function, args


def _gather(places: list[int]) -> Callable[[Frame], Sequence[Any]]:
    """``frame -> [frame[i] for i in places]``, in one call of C code."""
    if len(places) > 1:
        return itemgetter(*places)
    return itemgetter(slice(places[0], places[0] + 1) if places else slice(0, 0))


def _check_count(function: VMFunction, at: int, called: VMFunction, given: int) -> None:
    if given != len(called.params):
        raise ExecutableError(
            f"section code: function {function.name!r}: instruction {at}: "
            f"{called.name} takes {len(called.params)} arguments, got {given}"
        )


def _resolve(
    executable: Executable, packed: Mapping[str, Packed], num_threads: int | None
) -> dict[str, Packed | Builtin]:
    kernels = executable.linker(executable, num_threads) if executable.linker else {}
    tables = (_converting(packed.get), kernels.get, _converting(registered), BUILTINS.get)
    found: dict[str, Packed | Builtin] = {}
    missing: list[str] = []
    for name in executable.packed_names:
        chosen = next((f for f in (table(name) for table in tables) if f is not None), None)
        if chosen is None:
            missing.append(f"kernel {name}" if name in executable.kernel_names else name)
        else:
            found[name] = chosen
    if missing:
        raise RunError(
            f"no packed function {', '.join(missing)}: give it in packed=, "
            "or register it with register_func"
        )
    return found


def _converting(table: Callable[[str], Packed | None]) -> Callable[[str], Packed | None]:
    """`table` of functions that others wrote: their results become what kernels take."""

    def look_up(name: str) -> Packed | None:
        function = table(name)
        if function is None:
            return None
        return lambda *args: convert(f"the result of {name!r}", function(*args))

    return look_up
