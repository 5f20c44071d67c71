"""The interpreter: runs decoded functions, one instruction after the other.

Calls of functions and closures do not use the Python stack.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from relax_egraph.errors import RunError
from relax_egraph.vm.arguments import convert
from relax_egraph.vm.builtins import Builtin, Packed, invoke_closure
from relax_egraph.vm.closure import Closure
from relax_egraph.vm.decoding import Around, Caller, Code, Decoder, Gather, Program
from relax_egraph.vm.executable import Executable
from relax_egraph.vm.matching import describe
from relax_egraph.vm.stack import Place, moments, note_stack

# names for the loop below: a global is faster than an attribute of an enum
_PACKED, _, _TAIL, _INVOKE, _INVOKE_TAIL, _RET, _IF, _GOTO, _SEGMENT, _PAUSE = map(int, Code)


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of instructions, as one call of machine code.

    `run` returns the values of `targets`, or ``None``: then the interpreter runs `first` and the
    instructions after it.
    """

    run: Callable[..., tuple[Any, ...] | None]
    gather: Gather
    targets: tuple[int, ...]
    end: int
    first: tuple[int, Any, Any, Any]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Entry:
    """A function of `interpreter` as a value."""

    interpreter: "Interpreter"
    program: Program

    def __repr__(self) -> str:
        function = self.program.function
        return f"<{function.name}({', '.join(function.params)})>"

    def check_count(self, count: int) -> None:
        """Raise `RunError` unless the function takes `count` arguments."""
        function = self.program.function
        if count != len(function.params):
            raise RunError(
                f"closure {function.name} takes {len(function.params)} arguments, got {count}"
            )

    def __call__(self, *args: Any) -> Any:
        """Call the function."""
        self.check_count(len(args))
        name = self.program.function.name
        converted = [convert(f"an argument of {name}", a) for a in args]
        return self.interpreter.run(self.program, converted)


class Interpreter:
    """The functions of an executable, decoded; `vm_state` is the machine that its code sees.

    `around` wraps the calls of packed functions: see `Decoder`.
    """

    def __init__(
        self,
        executable: Executable,
        packed: Mapping[str, Packed | Builtin],
        vm_state: object,
        max_depth: int,
        around: Around | None = None,
    ) -> None:
        self.programs = {f.name: Program(f) for f in executable.functions}
        self._executable = executable
        self._max_depth = max_depth

        def as_value(program: Program) -> Entry:
            return Entry(self, program)

        decoder = Decoder(executable, self.programs, packed, vm_state, as_value, around)
        for program in self.programs.values():
            decoder.decode(program)

    def run(self, program: Program, args: Sequence[Any]) -> Any:
        """Interpret a function on converted arguments.

        A tail call replaces its caller, so tail recursion needs no stack.  An exception gets a note
        with the stack.
        """
        registers = program.frame.copy()
        registers[: len(args)] = args
        code, pc, tail_calls = program.code, 0, 0
        callers: list[Caller] = []
        started = next(moments)
        try:
            step = code[0]
            while True:
                kind, a, b, c = step
                if kind == _PACKED:
                    registers[c] = a(*b(registers))
                    pc += 1
                elif kind == _RET:
                    value = registers[a]
                    if not callers:
                        return value
                    program, registers, pc, c, tail_calls = callers.pop()
                    code = program.code
                    registers[c] = value
                elif kind == _IF:
                    condition = registers[a]
                    if not isinstance(condition, int):
                        raise RunError(f"the condition is {describe(condition)}, needs a boolean")
                    pc = pc + 1 if condition else b
                elif kind == _GOTO:
                    pc = a
                elif kind == _SEGMENT:
                    values = a.run(*a.gather(registers))
                    if values is None:
                        step = a.first
                        continue
                    for target, value in zip(a.targets, values, strict=True):
                        registers[target] = value
                    pc = a.end
                elif kind == _PAUSE:
                    a(program, registers, pc, tail_calls, callers)
                    step = b
                    continue
                else:
                    args = b(registers)
                    if kind in (_INVOKE, _INVOKE_TAIL):
                        called, args = _opened(args)
                        if type(called) is not Entry or called.interpreter is not self:
                            registers[c] = invoke_closure(called, *args)
                            pc += 1
                            step = code[pc]
                            continue
                        called.check_count(len(args))
                        a = called.program
                    if kind in (_TAIL, _INVOKE_TAIL):
                        tail_calls += 1
                    else:
                        if len(callers) >= self._max_depth:
                            raise RunError(f"more than {self._max_depth} calls within calls")
                        callers.append((program, registers, pc + 1, c, tail_calls))
                        tail_calls = 0
                    program, pc = a, 0
                    code, registers = a.code, a.frame.copy()
                    registers[: len(args)] = args
                step = code[pc]
        except BaseException as error:
            with suppress(Exception):  # some exceptions do not accept notes
                note_stack(error, self.places(program, pc, tail_calls, callers), started)
            raise

    def places(
        self, program: Program, at: int, tail_calls: int, callers: Sequence[Caller]
    ) -> list[Place]:
        """The places of active calls; the last and innermost is instruction `at` of `program`."""
        calls = [(caller, after - 1, count) for caller, _, after, _, count in callers]
        calls.append((program, at, tail_calls))
        return [Place(self._executable, p.function, at, count) for p, at, count in calls]


def _opened(called: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
    """The function of a closure, and all its arguments."""
    function, *args = called
    if type(function) is Closure:
        return function.function, (*args, *function.captured)
    return function, args
