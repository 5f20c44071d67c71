"""Operands of LLVM instructions, with Python's operators; and loops being written."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from relax_egraph.lower.emit.module_text import Type

if TYPE_CHECKING:
    from relax_egraph.lower.emit.emitter import Function


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """An operand of `function`: the name of a register, or a literal."""

    function: "Function"
    type: Type
    text: str

    def __str__(self) -> str:
        return f"{self.type} {self.text}"

    def __add__(self, other: "Operand") -> "Value":
        return self.function.binary("+", self, other)

    def __radd__(self, other: "Operand") -> "Value":
        return self.function.binary("+", other, self)

    def __sub__(self, other: "Operand") -> "Value":
        return self.function.binary("-", self, other)

    def __rsub__(self, other: "Operand") -> "Value":
        return self.function.binary("-", other, self)

    def __mul__(self, other: "Operand") -> "Value":
        return self.function.binary("*", self, other)

    def __rmul__(self, other: "Operand") -> "Value":
        return self.function.binary("*", other, self)

    def __truediv__(self, other: "Operand") -> "Value":
        return self.function.binary("/", self, other)

    def __rtruediv__(self, other: "Operand") -> "Value":
        return self.function.binary("/", other, self)

    def __and__(self, other: "Operand") -> "Value":
        return self.function.binary("&", self, other)

    def __or__(self, other: "Operand") -> "Value":
        return self.function.binary("|", self, other)

    def __xor__(self, other: "Operand") -> "Value":
        return self.function.binary("^", self, other)

    def __lshift__(self, other: "Operand") -> "Value":
        return self.function.binary("<<", self, other)

    def __rshift__(self, other: "Operand") -> "Value":
        return self.function.binary(">>", self, other)


Operand = Value | int | float
"""What arithmetic takes beside values: a number becomes a literal of the other side's type."""


@dataclass(slots=True)
class Loop:
    """A loop being written: its index, and the values it carries from turn to turn."""

    index: Value
    values: tuple[Value, ...]
    following: tuple[Value, ...] = ()
    results: tuple[Value, ...] = ()

    def carry(self, *values: Value) -> None:
        """Give the next turn `values`; after the loop they are its `results`."""
        self.following = values
