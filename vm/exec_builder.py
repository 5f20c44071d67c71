"""Emits instructions and builds executables.

    ib = ExecBuilder()
    with ib.function("main", num_inputs=1, param_names=["x"]):
        ib.emit_call("test.add", [ib.r(0), ib.imm(10)], dst=ib.r(1), origin="lv0")
        ib.emit_ret(ib.r(1))
    executable = ib.get()

The code of a function is verified when its block ends.  The `origin` of an instruction is the name
in the source of the value that it computes; listings, errors and debuggers show it.
"""

import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from relax_egraph.base.parameters import collection, takes
from relax_egraph.errors import IllFormed
from relax_egraph.vm.bytecode import (
    IMMEDIATE_MAX,
    IMMEDIATE_MIN,
    MAX_REGISTERS,
    VM_STATE,
    VOID,
    Call,
    Goto,
    If,
    Instruction,
    Kind,
    Operand,
    Ret,
    encode,
)
from relax_egraph.vm.check import Bounds, find_fault, registers_read
from relax_egraph.vm.constants import ConstantPool
from relax_egraph.vm.executable import ConstantValue, Executable, VMFunction
from relax_egraph.vm.renumber import renumber, renumbering

Value: TypeAlias = Operand | ConstantValue
"""An argument of `emit_call`: an operand, or a value that becomes one."""


@dataclass(slots=True)
class _Open:
    """The function under construction."""

    name: str
    params: tuple[str, ...]
    param_info: tuple[str, ...]
    private: bool
    code: list[Instruction] = field(default_factory=list[Instruction])
    origins: list[str] = field(default_factory=list[str])
    jumps: "dict[int, Label]" = field(default_factory=dict[int, "Label"])


@dataclass(eq=False, slots=True)
class Label:
    """A jump target in one function; `ExecBuilder.place` sets its position."""

    function: _Open
    at: int | None = None


class ExecBuilder:
    """Builds an `Executable` function by function; `constants` are the initial constants."""

    @takes(constants=collection("a sequence of constants"))
    def __init__(self, constants: Sequence[ConstantValue] = ()) -> None:
        self._functions: list[VMFunction] = []
        self._words: list[int] = []
        self._offsets: list[int] = []
        self._origins: list[str] = []
        self._callees: dict[str, int] = {}
        self._constants = ConstantPool(constants)
        self._open: _Open | None = None

    @contextmanager
    def function(
        self,
        name: str,
        num_inputs: int = 0,
        param_names: Sequence[str] | None = None,
        param_info: Sequence[str] | None = None,
        *,
        private: bool = False,
        allow_unused: bool = False,
    ) -> Generator[None]:
        """Open a function whose inputs are ``r(0) … r(num_inputs - 1)``.

        At the end of the block, the function is verified (`check.find_fault`, raised as
        `IllFormed`; an unused input is a warning unless `allow_unused`), and its registers are
        renumbered in order of first mention.  A function that fails leaves no trace.
        """
        if self._open is not None:
            raise IllFormed(f"function {name!r} is opened inside {self._open.name!r}")
        if any(f.name == name for f in self._functions):
            raise IllFormed(f"function {name!r} is defined twice")
        params = tuple(param_names or (f"arg{i}" for i in range(num_inputs)))
        info = tuple(param_info or ("" for _ in params))
        if not len(params) == len(info) == num_inputs or len(set(params)) != num_inputs:
            raise IllFormed(f"function {name!r}: {num_inputs} inputs, parameters {params}, {info}")
        self._open = _Open(name, params, info, private)
        before = len(self._constants), len(self._callees)
        try:
            yield
            self._close(self._open, allow_unused=allow_unused)
        except BaseException:
            self._forget(*before)
            raise
        finally:
            self._open = None

    def get(self) -> Executable:
        """The executable of all finished functions."""
        return Executable(
            tuple(self._functions),
            self._constants.values,
            tuple(self._callees),
            np.array(self._words, np.int64),
            np.array(self._offsets, np.int64),
            origins=tuple(self._origins) if any(self._origins) else (),
        )

    # --- operands ---------------------------------------------------------------------

    def r(self, index: int) -> Operand:
        """Register `index` of the open function."""
        if not 0 <= index < MAX_REGISTERS:
            raise IllFormed(f"register {index} is outside of 0..{MAX_REGISTERS - 1}")
        return Operand(Kind.REGISTER, index)

    def c(self, index: int) -> Operand:
        """Constant `index` of the pool."""
        return Operand(Kind.CONSTANT, index)

    def imm(self, value: int) -> Operand:
        """The integer `value` as an immediate of 61 bits; `convert_constant` takes any integer."""
        if not IMMEDIATE_MIN <= value <= IMMEDIATE_MAX:
            raise IllFormed(f"the immediate {value} does not fit 61 bits")
        return Operand(Kind.IMMEDIATE, int(value))

    def f(self, name: str) -> Operand:
        """The function or packed function `name`, as a value."""
        return Operand(Kind.FUNCTION, self._callees.setdefault(name, len(self._callees)))

    def vm_state(self) -> Operand:
        """The machine itself, an operand of builtins that allocate or call."""
        return VM_STATE

    def void_arg(self) -> Operand:
        """No value: an argument of ``None``; as `dst`, it drops the result."""
        return VOID

    def convert_constant(self, value: Value) -> Operand:
        """`value` as an operand: small integers are immediates, other values go into the pool.

        The same array object, and equal shapes, numbers, strings and dtypes, are stored once.
        Arrays in the pool are read-only.
        """
        if isinstance(value, Operand):
            return value
        if isinstance(value, int) and IMMEDIATE_MIN <= value <= IMMEDIATE_MAX:
            return self.imm(value)
        return self.c(self._constants.index(value))

    # --- instructions -----------------------------------------------------------------

    def emit_call(
        self, name: str, args: Sequence[Value] = (), dst: Operand = VOID, *, origin: str = ""
    ) -> None:
        """``dst = name(args…)``."""
        operands = tuple(self.convert_constant(a) for a in args)
        self._emit(Call(self.f(name).value, operands, dst), origin)

    def emit_ret(self, value: Value, *, origin: str = "") -> None:
        """Return `value`."""
        self._emit(Ret(self.convert_constant(value)), origin)

    def emit_if(self, cond: Operand, false_offset: int | Label, *, origin: str = "") -> None:
        """Continue if `cond` is true, else jump to the label, or by `false_offset` instructions."""
        self._emit(If(cond, self._offset(false_offset)), origin)

    def emit_goto(self, offset: int | Label, *, origin: str = "") -> None:
        """Jump to the label, or by `offset` instructions."""
        self._emit(Goto(self._offset(offset)), origin)

    def label(self) -> Label:
        """A new label of the open function."""
        return Label(self._function())

    def place(self, label: Label) -> None:
        """Put `label` before the next instruction."""
        function = self._own(label)
        if label.at is not None:
            raise IllFormed(f"the label is placed twice: at instruction {label.at}, and here")
        label.at = len(function.code)

    # --- the end of a function --------------------------------------------------------

    def _function(self) -> _Open:
        if self._open is None:
            raise IllFormed("no function is open: use `with ib.function(name, num_inputs):`")
        return self._open

    def _emit(self, instruction: Instruction, origin: str) -> None:
        if not origin.isprintable():
            raise IllFormed(f"the origin {origin!r} is not one line of printable text")
        function = self._function()
        function.code.append(instruction)
        function.origins.append(origin)

    def _offset(self, target: int | Label) -> int:
        if isinstance(target, int):
            return target
        function = self._own(target)
        function.jumps[len(function.code)] = target
        return 0

    def _own(self, label: Label) -> _Open:
        """The open function, which must own `label`."""
        function = self._function()
        if label.function is not function:
            raise IllFormed(
                f"function {function.name!r}: the label is of function {label.function.name!r}"
            )
        return function

    def _close(self, function: _Open, *, allow_unused: bool) -> None:
        _resolve_jumps(function)
        inputs = len(function.params)
        numbers = renumbering(function.code, inputs)
        bounds = Bounds(max(numbers, default=-1) + 1, len(self._constants), len(self._callees))
        if fault := find_fault(function.code, inputs, bounds):
            raise IllFormed(f"function {function.name!r}: {fault}")
        used = registers_read(function.code)
        unused = [name for i, name in enumerate(function.params) if i not in used]
        if unused and not allow_unused:
            message = f"function {function.name!r} does not use its inputs: {', '.join(unused)}"
            warnings.warn(message, stacklevel=4)
        start = len(self._offsets)
        for instruction in function.code:
            self._offsets.append(len(self._words))
            self._words.extend(encode(renumber(instruction, numbers)))
        self._origins += function.origins
        finished = VMFunction(
            function.name,
            function.params,
            len(numbers),
            start,
            len(self._offsets),
            function.param_info,
            function.private,
        )
        self._functions.append(finished)

    def _forget(self, constants: int, callees: int) -> None:
        self._constants.truncate(constants)
        self._callees = {name: i for name, i in self._callees.items() if i < callees}


def _resolve_jumps(function: _Open) -> None:
    for at, label in function.jumps.items():
        if label.at is None:
            raise IllFormed(f"function {function.name!r}: instruction {at}: no place to go to")
        jump, offset = function.code[at], label.at - at
        moved = replace(jump, false_offset=offset) if isinstance(jump, If) else Goto(offset)
        function.code[at] = moved
