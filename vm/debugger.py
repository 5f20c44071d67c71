"""The debugger: breakpoints, single steps, traces of instructions.

    debugger = Debugger(vm)
    debugger.breakpoint("main", origin="lv3")    # prints the position and the registers
    debugger["main"](x)

It has its own interpreter, in whose code pauses replace instructions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TextIO, TypeAlias

from relax_egraph.vm.arguments import arrange
from relax_egraph.vm.bytecode import Call, Kind
from relax_egraph.vm.decoding import Caller, Code, Frame, Program
from relax_egraph.vm.executable import VMFunction
from relax_egraph.vm.machine import VirtualMachine
from relax_egraph.vm.matching import describe
from relax_egraph.vm.printing import instruction_at, origin
from relax_egraph.vm.register_names import Names, names_of, register_names
from relax_egraph.vm.stack import Place

_ALLOCATIONS = ("vm.builtin.alloc_storage", "vm.builtin.alloc_tensor")


@dataclass(frozen=True, slots=True, eq=False)
class Pause:
    """A call that is paused before the instruction at `place`.

    `registers` are the registers that every path to here has written, and `names` the names of
    their values in the source.  Arrays belong to the call: a hook must only read them.  `depth` is
    the number of calls around this one.
    """

    place: Place
    registers: Mapping[int, Any]
    names: Names
    depth: int
    _stack: Callable[[], Sequence[Place]]

    @property
    def function(self) -> str:
        """The name of the function."""
        return self.place.function.name

    @property
    def at(self) -> int:
        """The number of the instruction in the function."""
        return self.place.at

    @property
    def text(self) -> str:
        """The instruction, as in listings."""
        return self.place.text

    @property
    def origin(self) -> str:
        """The name in the source of the value that the instruction computes, or empty."""
        return self.place.origin

    @property
    def values(self) -> Mapping[str, Any]:
        """The values of registers, by name; memory has the name of the value that it is for."""
        return {name: self.registers[r] for r, name in self.names.items() if name}

    @property
    def stack(self) -> Sequence[Place]:
        """The places of all active calls, the innermost last."""
        return self._stack()

    def __str__(self) -> str:
        values = (
            f"  {_named(r, self.names[r])} = {describe(v)}" for r, v in self.registers.items()
        )
        return "\n".join([str(self.place), *values])


Hook: TypeAlias = Callable[[Pause], object]
"""Called at a pause; an exception ends the call of the machine."""


class Debugger:
    """Runs the functions of `vm` in an interpreter, with breakpoints and hooks.

    The machine and its other users are not affected.  A hook must only read the values of its
    pause.  The call continues when the hook returns; an exception of a hook reaches the caller.
    """

    def __init__(self, vm: VirtualMachine) -> None:
        self._executable = vm.executable
        self._interpreter = vm.interpreting()
        self._register_names = cache(partial(register_names, vm.executable))

    def __getitem__(self, name: str) -> Callable[..., Any]:
        program = self._program(name)

        def function(*args: Any, **named: Any) -> Any:
            return self._interpreter.run(program, arrange(program.function, args, named))

        return function

    def breakpoint(
        self,
        function: str,
        at: int | None = None,
        hook: Hook = print,
        *,
        origin: str | None = None,
    ) -> None:
        """Pause before instruction `at`, or before instructions that compute the value `origin`.

        Raises `UnknownFunction`, and ``ValueError`` for an instruction or a value that does not
        exist.
        """
        program = self._program(function)
        if (at is None) == (origin is None):
            raise ValueError("a breakpoint needs either an instruction (at=) or a value (origin=)")
        for place in self._computing(program.function, origin) if origin is not None else [at or 0]:
            if not 0 <= place < len(program.code):
                last = len(program.code) - 1
                raise ValueError(f"function {function!r} has instructions 0..{last}, got {place}")
            self._pause_before(program, place, hook)

    def step(self, hook: Hook = print) -> None:
        """Pause before each instruction of each function."""
        for program in self._interpreter.programs.values():
            for at in range(len(program.code)):
                self._pause_before(program, at, hook)

    def trace(self, stream: TextIO | None = None) -> None:
        """Write each instruction before it runs, and its result after it.

        The trace goes to `stream`, by default to the standard output.
        """
        self.step(_Trace(stream))

    def clear(self) -> None:
        """Remove all breakpoints, steps and traces."""
        for program in self._interpreter.programs.values():
            for at, step in enumerate(program.code):
                while step[0] == Code.PAUSE:
                    step = program.code[at] = step[2]

    def _program(self, name: str) -> Program:
        return self._interpreter.programs[self._executable[name].name]

    def _computing(self, function: VMFunction, name: str) -> list[int]:
        """The instructions that compute `name`; if there are none, those that allocate it."""
        code = self._executable.instructions(function)
        names_at = [names_of(origin(self._executable, function, at)) for at in range(len(code))]
        computing = [at for at, names in enumerate(names_at) if name in names]
        if not computing:
            known = ", ".join(dict.fromkeys(n for names in names_at for n in names)) or "none"
            raise ValueError(
                f"no instruction of function {function.name!r} computes {name!r}; "
                f"there are: {known}"
            )
        return [at for at in computing if not self._allocates(code[at])] or computing

    def _allocates(self, instruction: object) -> bool:
        if not isinstance(instruction, Call):
            return False
        return self._executable.callees[instruction.callee] in _ALLOCATIONS

    def _pause_before(self, program: Program, at: int, hook: Hook) -> None:
        def pause(
            program: Program, frame: Frame, at: int, tail_calls: int, callers: Sequence[Caller]
        ) -> None:
            names = self._register_names(program.function)[at]
            registers = {register: frame[register] for register in sorted(names)}
            place = Place(self._executable, program.function, at, tail_calls)
            waiting = tuple(callers)
            stack = partial(self._interpreter.places, program, at, tail_calls, waiting)
            hook(Pause(place, registers, names, len(waiting), stack))

        program.code[at] = (int(Code.PAUSE), pause, program.code[at], None)


class _Trace:
    """Writes lines; remembers the last pause of each active call."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._last: list[Pause] = []

    def __call__(self, pause: Pause) -> None:
        indent = "  " * pause.depth
        for computed in self._computed(pause):
            print(f"{indent}    {computed}", file=self._stream)
        del self._last[pause.depth :]
        self._last.append(pause)
        print(f"{indent}{pause.place}", file=self._stream)

    def _computed(self, pause: Pause) -> list[str]:
        """The result of the previous instruction, if it belongs to the same call."""
        if len(self._last) <= pause.depth:
            return []
        last = self._last[pause.depth].place
        if last.function is not pause.place.function or last.at + 1 != pause.at:
            return []
        instruction = instruction_at(last.executable, last.function, last.at)
        if not isinstance(instruction, Call):
            return []
        names, dst = names_of(last.origin), instruction.dst
        if dst.kind is Kind.REGISTER and dst.value in pause.registers:
            value = pause.registers[dst.value]
            return [f"{_named(dst.value, ', '.join(names))} = {describe(value)}"]
        values = pause.values
        return [f"{name} = {describe(values[name])}" for name in names if name in values]


def _named(register: int, name: str) -> str:
    return f"%{register} {name}".rstrip()
