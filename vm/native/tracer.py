"""The tracer: abstract interpretation of bytecode with kinds and symbolic numbers.

Calls of functions are inlined.  Code that is not proven to be safe is `Refused`: the interpreter
runs it, and reports errors.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from relax_egraph.vm.analysis import INVOKE_CLOSURE, live_registers, tail_calls
from relax_egraph.vm.bytecode import Call, Kind, Operand, successors
from relax_egraph.vm.executable import Executable, VMFunction
from relax_egraph.vm.native.branches import Registers
from relax_egraph.vm.native.flow import Activation, Body, Calling, Calls
from relax_egraph.vm.native.kinds import Kinds
from relax_egraph.vm.native.numbers import literal
from relax_egraph.vm.native.program import KernelType
from relax_egraph.vm.native.refused import Refused
from relax_egraph.vm.native.trace import KernelCall, Leave
from relax_egraph.vm.native.values import (
    NOTHING,
    Fixed,
    Function,
    Prim,
    Shape,
    Tensor,
    Value,
)

MAX_DEPTH = 32
"""The depth limit of inlined calls."""

WORK = 20
"""The average number of times that an instruction of an executable may be traced."""

_FATAL, _WRITABLE = "vm.builtin.fatal", "vm.builtin.writable"

_OPENING: Mapping[str, Callable[[Kinds, Value, Any], None]] = {
    "vm.builtin.check_tuple_info": Kinds.open_tuple,
    "vm.builtin.check_shape_info": Kinds.open_shape,
}
"""Checks whose last operand is the number of fields of a value."""


class Callees:
    """The callees of native programs: `kernels` in machine code, and builtins with a `Handler`.

    `instructions_left` bounds the work on all programs of the executable.  `stores_in_place` states
    whether any code writes tensors in place.
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
        self.stores_in_place = _WRITABLE in executable.callees
        self.instructions_left = 10_000 + WORK * len(executable.offsets)
        self._bodies: dict[str, Body] = {}

    def body(self, function: VMFunction) -> Body:
        """The code of `function`."""
        if function.name not in self._bodies:
            code = self.executable.instructions(function)
            self._bodies[function.name] = Body(
                code,
                live_registers(code),
                tail_calls(self.executable, code),
                {t: at for at, i in enumerate(code) for t in successors(i, at) if t <= at},
            )
        return self._bodies[function.name]

    @cached_property
    def recursive(self) -> frozenset[str]:
        """The functions that call themselves, directly or not, by tail calls."""
        called = {
            name: {
                callee
                for at in body.returned
                if isinstance(call := body.code[at], Call)
                and (callee := self.executable.callees[call.callee]) in self.functions
            }
            for name, body in ((f.name, self.body(f)) for f in self.executable.functions)
        }
        return frozenset(name for name in called if name in _reached(called, called[name]))


def _reached(ways: Mapping[str, set[str]], start: Iterable[str]) -> set[str]:
    """The nodes reachable from `start` in the graph `ways`."""
    reached, pending = set(start), list(start)
    while pending:
        new = ways[pending.pop()] - reached
        reached |= new
        pending += new
    return reached


class Tracer(Calling):
    """Fills a `Trace`."""

    def __init__(self, callees: Callees, num_arguments: int, max_depth: int = MAX_DEPTH) -> None:
        super().__init__(num_arguments)
        self._callees = callees
        self._max_depth = min(max_depth, MAX_DEPTH)
        self._active: set[str] = set()
        self._constants: dict[int, Tensor] = {}

    # --- instructions -----------------------------------------------------------------

    def function(
        self, function: VMFunction, args: Sequence[Value], calls: Calls | None = None
    ) -> Value | None:
        """The result of `function` for `args`, or ``None`` if it never returns.

        Tail calls lead back to the loops of `calls`.
        """
        name = function.name
        if name in self._active:
            raise Refused("recursion")
        if len(self._active) > self._max_depth:
            raise Refused(f"more than {self._max_depth} calls within calls")
        recursive = name if name in self._callees.recursive else None
        self._active.add(name)
        try:
            body = self._callees.body(function)
            return Activation(self, body, args, calls or {}).result(recursive)
        finally:
            self._active.remove(name)

    def name(self, call: Call) -> str:
        """The name of the callee."""
        return self._callees.executable.callees[call.callee]

    def is_fatal(self, call: Call) -> bool:
        """See `Calling`."""
        return self.name(call) == _FATAL and _FATAL in self._callees.builtins

    def leave(self) -> None:
        """See `Calling`."""
        if any(use.writable for use in self.trace.arguments.values()):
            raise Refused("an error after a store into an argument")
        self.trace.add(Leave())

    def called(self, call: Call, registers: Registers) -> tuple[VMFunction, Sequence[Value]] | None:
        """See `Calling`."""
        name = self.name(call)
        if name in self._callees.functions:
            args = [self.value(a, registers) for a in call.args]
        elif name == INVOKE_CLOSURE and name in self._callees.builtins and call.args:
            closure, *args = [self.value(a, registers) for a in call.args]
            if not isinstance(closure, Function):
                raise Refused("a call of a function from outside the program")
            name, args = closure.name, [*args, *closure.captured]
        else:
            return None
        function = self._callees.functions[name]
        if len(args) != len(function.params):
            raise Refused(f"a call of {name} with {len(args)} arguments")
        return function, args

    def call(self, call: Call, registers: Registers, calls: Calls | None = None) -> bool:
        """See `Calling`."""
        self._count()
        called = self.called(call, registers)
        if called is not None:
            result = self.function(*called, calls)
        else:
            result = self._packed(self.name(call), call, registers)
        if result is not None and call.dst.kind is Kind.REGISTER:
            registers[call.dst.value] = result
        return result is not None

    def _packed(self, name: str, call: Call, registers: Registers) -> Value:
        if name in self._callees.kernels:
            return self._kernel(name, self._callees.kernels[name], call, registers)
        if name not in self._callees.builtins:
            raise Refused(f"a call of {name}")
        operands = Operands(self, call.args, registers)
        if name in _OPENING:
            (operand,), (*_, count) = operands.split(1)
            _OPENING[name](self, operand, count)
        return self.has_read(self._callees.builtins[name](operands))

    def _count(self) -> None:
        self._callees.instructions_left -= 1
        if self._callees.instructions_left < 0:
            raise Refused("too many instructions")

    def _kernel(self, name: str, code: KernelType, call: Call, registers: Registers) -> Value:
        count = len(code.dtypes)
        if len(call.args) != count + code.num_integers:
            raise Refused(f"a call of {name} with {len(call.args)} arguments")
        values = [self.value(a, registers) for a in call.args]
        arrays = tuple(map(self.tensor, values, code.dtypes))
        for output in arrays[count - code.num_outputs :]:
            self.write(output)
        integers = tuple(map(self.number, values[count:]))
        self.trace.add(KernelCall(name, arrays, integers))
        return NOTHING

    # --- operands ---------------------------------------------------------------------

    def value(self, operand: Operand, registers: Registers) -> Value:
        """See `Calling`."""
        match operand.kind:
            case Kind.REGISTER:
                if operand.value not in registers:
                    raise Refused("a value with different kinds after a branch")
                return self.opened(self.known(registers[operand.value]))
            case Kind.IMMEDIATE:
                return Prim(operand.value)
            case Kind.CONSTANT:
                return self._constant(operand.value)
            case Kind.VOID:
                return NOTHING
            case Kind.FUNCTION if self._name_of(operand) in self._callees.functions:
                return Function(self._name_of(operand))
            case Kind.FUNCTION | Kind.VM_STATE:
                raise Refused(f"{operand} as a value")

    def constant(self, operand: Operand) -> Any:
        """The value of the constant `operand`."""
        match operand.kind:
            case Kind.IMMEDIATE:
                return operand.value
            case Kind.CONSTANT:
                return self._callees.executable.constants[operand.value]
            case _:
                raise Refused(f"{operand} is no constant")

    def _name_of(self, operand: Operand) -> str:
        return self._callees.executable.callees[operand.value]

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
        """All operands; raises `Refused` unless there are `count`."""
        if len(self.operands) != count:
            raise Refused(f"{len(self.operands)} operands, needs {count}")
        return [self.tracer.value(o, self.registers) for o in self.operands]

    def split(self, count: int) -> tuple[list[Value], list[Any]]:
        """The first `count` operands as values, and the others as constants."""
        first = Operands(self.tracer, self.operands[:count], self.registers).values(count)
        return first, list(map(self.tracer.constant, self.operands[count:]))


Handler: TypeAlias = Callable[[Operands], Value]
"""Traces a call of a builtin, and returns its result."""
