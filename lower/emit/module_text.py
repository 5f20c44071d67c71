"""LLVM modules as text: types, literals, and the module that collects functions.

`llvmlite.ir` builds the same text six times slower; `llvmlite.binding` parses and verifies it.
"""

import ctypes
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from relax_egraph.lower.emit.target import Target


@dataclass(frozen=True, slots=True)
class Type:
    """A scalar type of LLVM, or a vector of `lanes` of them."""

    element: str
    lanes: int = 1

    def __str__(self) -> str:
        return self.element if self.lanes == 1 else f"<{self.lanes} x {self.element}>"

    @property
    def is_float(self) -> bool:
        """Whether the elements are floating point."""
        return self.element in ("half", "float", "double")

    @property
    def bits(self) -> int:
        """The size of an element."""
        return _BITS[self.element]

    @property
    def scalar(self) -> "Type":
        """The type of one lane."""
        return Type(self.element)

    def of(self, lanes: int) -> "Type":
        """A vector of `lanes` elements of this type."""
        return Type(self.element, lanes)

    def with_element(self, element: "Type") -> "Type":
        """The type with another element and the same number of lanes."""
        return Type(element.element, self.lanes)

    @property
    def suffix(self) -> str:
        """The name of this type in an overloaded intrinsic: ``v16f32``."""
        element = _SUFFIXES[self.element]
        return element if self.lanes == 1 else f"v{self.lanes}{element}"


_BITS = {"half": 16, "float": 32, "double": 64, "ptr": 64}
_SUFFIXES = {"half": "f16", "float": "f32", "double": "f64", "ptr": "p0"}
for _bits in (1, 8, 16, 32, 64):
    _BITS[f"i{_bits}"] = _bits
    _SUFFIXES[f"i{_bits}"] = f"i{_bits}"

F16, F32, F64 = Type("half"), Type("float"), Type("double")
I1, I8, I16, I32, I64 = Type("i1"), Type("i8"), Type("i16"), Type("i32"), Type("i64")
PTR = Type("ptr")


def literal(type: Type, number: float) -> str:
    """`number` as an operand of `type`, in every lane; integers wrap, floats are rounded.

    The literal of a pointer is always null.
    """
    if type.is_float:
        rounded = ctypes.c_float(number).value if type.element == "float" else float(number)
        text = f"0x{struct.unpack('<Q', struct.pack('<d', rounded))[0]:016X}"
    elif type.element == "ptr":
        text = "null"
    elif type.element == "i1":
        text = "true" if number else "false"
    else:
        half = 1 << (type.bits - 1)
        text = str((int(number) + half) % (2 * half) - half)
    return text if type.lanes == 1 else f"splat ({type.element} {text})"


class Module:
    """The text of an LLVM module for `target`: declarations on demand, and functions."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.signatures: dict[str, tuple[Type, ...]] = {}
        self._declarations: dict[str, str] = {}
        self._functions: list[str] = []

    def declare(self, name: str, result: Type | None, params: Sequence[Type]) -> None:
        """Declare the intrinsic or external function `name`, unless it is declared already."""
        if name not in self._declarations:
            operands = ", ".join(map(str, params))
            self._declarations[name] = f"declare {result or 'void'} @{name}({operands})"

    def define(self, name: str, params: tuple[Type, ...], text: str) -> None:
        """Add the text of a whole function."""
        if name in self.signatures:
            raise ValueError(f"function {name!r} is defined twice in one module")
        self.signatures[name] = params
        self._functions.append(text)

    def __str__(self) -> str:
        declarations = [d for name, d in self._declarations.items() if name not in self.signatures]
        return "\n".join([*declarations, *self._functions])


IntrinsicEmitter: TypeAlias = Callable[[Module, Target], None]
"""Writes the function that a `TensorIntrinsic` statement calls, into a module of its own.

It defines a function of the statement's name (with `emitter.Function`, not ``internal``) that takes
a ``ptr`` for each buffer of the statement, then an ``i64`` for each scalar, and any ``internal``
functions it needs.  It is compiled and cached once for each target, and linked to all kernels that
call it.
"""
