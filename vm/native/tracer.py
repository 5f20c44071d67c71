"""Follows bytecode instruction by instruction, with kinds and numbers in place of values.

Instructions of called functions are followed, too, so that a native program has none of their
calls.  What is not proven to be safe is `Refused`: the interpreter runs it, and says what is wrong.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from relax_egraph.vm.bytecode import Call, Goto, If, Instruction, Kind, Operand, Ret
from relax_egraph.vm.executable import Executable, VMFunction
from relax_egraph.vm.native.branches import Meeting, Path, Registers, joined, joined_value
from relax_egraph.vm.native.kinds import Kinds
from relax_egraph.vm.native.liveness import live_registers
from relax_egraph.vm.native.numbers import literal
from relax_egraph.vm.native.program import KernelType
from relax_egraph.vm.native.refused import Refused
from relax_egraph.vm.native.trace import Jump, KernelCall, Leave
from relax_egraph.vm.native.values import (
    NOTHING,
    Fixed,
    Heap,
    Prim,
    Shape,
    Storage,
    Tensor,
    Truth,
    Value,
)

MAX_DEPTH = 32
"""Calls within calls that are followed at most."""

WORK = 20
"""How often each instruction of an executable is followed at most, on average."""

_FATAL = "vm.builtin.fatal"


@dataclass(slots=True)
class Body:
    """The code of a function, and the registers that are live at each instruction, as bits."""

    code: Sequence[Instruction]
    live: Sequence[int]


class Callees:
    """What may be called: `kernels` that are machine code, builtins that have a `Handler`.

    `instructions_left` bounds the work on all programs of the executable together.
    """

    def __init__(
        self,
        executable: Executable,
        kernels: Mapping[str, KernelType],
        builtins: "Mapping[str, Handler]",
    ) -> None:
        self.executable = executable
        self.kernels = kernels
        self.builtins = builtins
        self.functions = {f.name: f for f in executable.functions}
        self.instructions_left = 10_000 + WORK * len(executable.offsets)
        self._bodies: dict[str, Body] = {}

    def body(self, function: VMFunction) -> Body:
        """The code of `function`."""
        if function.name not in self._bodies:
            code = self.executable.instructions(function)
            self._bodies[function.name] = Body(code, live_registers(code))
        return self._bodies[function.name]


class Tracer(Kinds):
    """Fills a `Trace`."""

    def __init__(self, callees: Callees, max_depth: int = MAX_DEPTH) -> None:
        super().__init__()
        self._callees = callees
        self._max_depth = min(max_depth, MAX_DEPTH)
        self._depth = 0
        self._constants: dict[int, Tensor] = {}

    # --- instructions -----------------------------------------------------------------

    def function(self, function: VMFunction, args: Sequence[Value]) -> Value:
        """What `function` returns for `args`."""
        body = self._callees.body(function)
        path: Path | None = Path(dict(enumerate(args)), self.made)
        meetings: dict[int, Meeting] = {}
        end, returned = Meeting(), list[Value]()
        for at, instruction in enumerate(body.code):
            if at in meetings:
                path = self._meet(meetings.pop(at), path, body.live[at])
            if path is None:
                continue
            self.made = path.made
            match instruction:
                case Call(callee) if self._is_fatal(callee):
                    self._leave()
                    path = None
                case Call():
                    self.call(instruction, path.registers)
                    path.made = self.made
                case Goto(offset):
                    self._jump(meetings, at, offset, path)
                    path = None
                case If(cond, offset):
                    truth = self.value(cond, path.registers)
                    if not isinstance(truth, Truth) or any(isinstance(a, Heap) for a in args):
                        raise Refused("a branch on what is no condition of the program's own")
                    self._jump(meetings, at, offset, path.copy(), truth)
                case Ret(value):
                    returned.append(self.value(value, path.registers))
                    end.paths.append(path)
                    self.trace.steps.append(Jump(end.label))
                    path = None
        if not returned:
            raise Refused("a function that does not return")
        if self.trace.steps[-1] == Jump(end.label):
            self.trace.steps.pop()
        self.trace.steps.append(end.label)
        self.made = set[Storage]().union(*(p.made for p in end.paths))
        return joined_value(returned, end.paths)

    def _meet(self, meeting: Meeting, path: Path | None, live: int) -> Path:
        """Go on where jumps lead to, and `path` if it comes from the instruction before."""
        self.trace.steps.append(meeting.label)
        paths = meeting.paths if path is None else [*meeting.paths, path]
        return joined(paths, {r for r in range(live.bit_length()) if live >> r & 1})

    def _jump(
        self,
        meetings: dict[int, Meeting],
        at: int,
        offset: int,
        path: Path,
        unless: Truth | None = None,
    ) -> None:
        if offset <= 0:
            raise Refused("a loop")
        meeting = meetings.setdefault(at + offset, Meeting())
        meeting.paths.append(path)
        self.trace.steps.append(Jump(meeting.label, unless))

    def _is_fatal(self, callee: int) -> bool:
        name = self._callees.executable.callees[callee]
        return name == _FATAL and name in self._callees.builtins

    def _leave(self) -> None:
        if any(use.writable for use in self.trace.arguments.values()):
            raise Refused("an error after a store into an argument")
        self.trace.steps.append(Leave())

    def call(self, call: Call, registers: Registers) -> None:
        """Follow one call, and write its result."""
        name = self._callees.executable.callees[call.callee]
        self._count()
        if name in self._callees.functions:
            result = self._inlined(self._callees.functions[name], call, registers)
        elif name in self._callees.kernels:
            result = self._kernel(name, self._callees.kernels[name], call, registers)
        elif name in self._callees.builtins:
            result = self._callees.builtins[name](Operands(self, call.args, registers))
        else:
            raise Refused(f"a call of {name}")
        if call.dst.kind is Kind.REGISTER:
            registers[call.dst.value] = result

    def _count(self) -> None:
        self._callees.instructions_left -= 1
        if self._callees.instructions_left < 0:
            raise Refused("too many instructions")

    def _inlined(self, function: VMFunction, call: Call, registers: Registers) -> Value:
        if len(call.args) != len(function.params):
            raise Refused(f"a call of {function.name} with {len(call.args)} arguments")
        if self._depth >= self._max_depth:
            raise Refused(f"more than {self._max_depth} calls within calls")
        args = [self.value(a, registers) for a in call.args]
        self._depth += 1
        result = self.function(function, args)
        self._depth -= 1
        return result

    def _kernel(self, name: str, code: KernelType, call: Call, registers: Registers) -> Value:
        count = len(code.dtypes)
        if len(call.args) != count + code.num_integers:
            raise Refused(f"a call of {name} with {len(call.args)} arguments")
        values = [self.value(a, registers) for a in call.args]
        arrays = tuple(map(self.tensor, values, code.dtypes))
        for output in arrays[count - code.num_outputs :]:
            self.write(output)
        integers = tuple(map(self.number, values[count:]))
        self.trace.steps.append(KernelCall(name, arrays, integers))
        return NOTHING

    # --- operands ---------------------------------------------------------------------

    def value(self, operand: Operand, registers: Registers) -> Value:
        """What `operand` is."""
        match operand.kind:
            case Kind.REGISTER:
                if operand.value not in registers:
                    raise Refused("a value that is one or another, after a branch")
                return registers[operand.value]
            case Kind.IMMEDIATE:
                return Prim(operand.value)
            case Kind.CONSTANT:
                return self._constant(operand.value)
            case Kind.VOID:
                return NOTHING
            case Kind.FUNCTION | Kind.VM_STATE:
                raise Refused(f"{operand} as a value")

    def constant(self, operand: Operand) -> Any:
        """The constant that `operand` is, as itself."""
        match operand.kind:
            case Kind.IMMEDIATE:
                return operand.value
            case Kind.CONSTANT:
                return self._callees.executable.constants[operand.value]
            case _:
                raise Refused(f"{operand} is no constant")

    def _constant(self, index: int) -> Value:
        match self._callees.executable.constants[index]:
            case np.ndarray() as array:
                if index not in self._constants:
                    if type(array) is not np.ndarray or not (
                        array.flags.c_contiguous and array.flags.aligned
                    ):
                        raise Refused(f"c[{index}] is laid out unusually")
                    self._constants[index] = Tensor(Fixed(index), array.dtype.name, array.shape)
                return self._constants[index]
            case int() as number:
                return Prim(literal(number))
            case tuple() as extents:
                return Shape(tuple(map(literal, extents)))
            case _:
                return Fixed(index)


@dataclass(frozen=True, slots=True)
class Operands:
    """The operands of a call of a builtin."""

    tracer: Tracer
    operands: Sequence[Operand]
    registers: Registers

    def values(self, count: int) -> list[Value]:
        """All operands, which have to be so many."""
        if len(self.operands) != count:
            raise Refused(f"{len(self.operands)} operands, needs {count}")
        return [self.tracer.value(o, self.registers) for o in self.operands]

    def split(self, count: int) -> tuple[list[Value], list[Any]]:
        """The first `count` operands, and the others as the constants that they are."""
        first = Operands(self.tracer, self.operands[:count], self.registers).values(count)
        return first, list(map(self.tracer.constant, self.operands[count:]))


Handler: TypeAlias = Callable[[Operands], Value]
"""Follows a call of a builtin, and says what it returns."""
