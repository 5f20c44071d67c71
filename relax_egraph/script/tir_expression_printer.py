"""Prints scalar expressions of the loop language, with as few brackets as Python allows."""

import math
from collections.abc import Set as AbstractSet
from typing import cast

from relax_egraph.ir.dtypes import is_float
from relax_egraph.script.layout import WIDTH
from relax_egraph.tir.expr import (
    COMPARISONS,
    Binary,
    Buffer,
    BufferLoad,
    Cast,
    DimSymbol,
    Imm,
    Intrinsic,
    Not,
    Select,
    TirExpr,
    TirVar,
)

_NOT, _COMPARISON, _UNARY, _ATOM = 3, 4, 7, 9
_LEVELS = {
    "or": 1,
    "and": 2,
    **dict.fromkeys(COMPARISONS, _COMPARISON),
    **dict.fromkeys(("+", "-"), 5),
    **dict.fromkeys(("*", "/", "//", "%"), 6),
}
"""The precedence of operators, as in Python; ``min`` and ``max`` are calls."""


class TirExpressionPrinter:
    """Prints expressions over named variables; `symbols` are the dimension symbols so far."""

    def __init__(self) -> None:
        self.symbols: set[str] = set()
        self._names: dict[TirVar | Buffer, str] = {}

    def name(self, thing: TirVar | Buffer, name: str) -> str:
        """Print `thing` as `name` from now on."""
        self._names[thing] = name
        return name

    def element(self, buffer: Buffer, indices: tuple[TirExpr, ...]) -> str:
        """``A[i, j]``; ``A[()]`` for a scalar."""
        inside = ", ".join(map(self.text, indices)) or "()"
        return f"{self._names.get(buffer, buffer.name)}[{inside}]"

    def text(self, expr: TirExpr) -> str:
        """`expr` on one line."""
        return self._text(expr, 0)

    def opened(self, expr: TirExpr, indent: str) -> list[str]:
        """`expr` on several lines: its outermost brackets, or new ones around it, are opened."""
        inner = indent + "    "
        if isinstance(expr, Binary) and expr.kind in _LEVELS:
            return [f"{indent}(", *self._chain(expr, inner), f"{indent})"]
        head, args = _call(expr)
        if not args:
            return [indent + self.text(expr)]
        lines: list[str] = []
        for arg in args:
            if isinstance(arg, Binary) and arg.kind in _LEVELS:
                lines += self._chain(arg, inner)
            else:
                lines += self._lines(arg, inner, 0)
            lines[-1] += ","
        return [f"{indent}{head}(", *lines, f"{indent})"]

    def _chain(self, expr: Binary, indent: str) -> list[str]:
        """A line for each operand of a chain of operators of one precedence."""
        if len(indent) + len(text := self.text(expr)) <= WIDTH:
            return [indent + text]
        level = _LEVELS[expr.kind]
        links = [expr]
        while level != _COMPARISON and _level(links[-1].a) == level:
            links.append(cast(Binary, links[-1].a))
        lines = self._lines(links[-1].a, indent, level + 1)
        for link in reversed(links):
            head, *rest = self._lines(link.b, indent, level + 1)
            lines += [f"{indent}{link.kind} {head.lstrip()}", *rest]
        return lines

    def _lines(self, expr: TirExpr, indent: str, around: int) -> list[str]:
        text = self._text(expr, around)
        return [indent + text] if len(indent) + len(text) <= WIDTH else self.opened(expr, indent)

    def mentions(self, expr: TirExpr, variables: AbstractSet[TirVar]) -> bool:
        """Whether any of `variables` occurs in `expr`."""
        match expr:
            case TirVar():
                return expr in variables
            case DimSymbol() | Imm():
                return False
            case Binary(a=a, b=b):
                inner = (a, b)
            case Not(a=a) | Cast(value=a):
                inner = (a,)
            case Select(condition=condition, a=a, b=b):
                inner = (condition, a, b)
            case Intrinsic(args=args) | BufferLoad(indices=args):
                inner = args
        return any(self.mentions(e, variables) for e in inner)

    def _text(self, expr: TirExpr, around: int) -> str:
        match expr:
            case TirVar(name=name):
                return self._names.get(expr, name)
            case DimSymbol(name=name):
                self.symbols.add(name)
                return name
            case Imm():
                return _immediate(expr, around)
            case Binary():
                return self._binary(expr, around)
            case Not(a=a):
                return _bracketed(f"not {self._text(a, _NOT)}", _NOT, around)
            case Cast(dtype=dtype, value=value):
                return f'T.Cast("{dtype}", {self.text(value)})'
            case Select(condition=condition, a=a, b=b):
                sides = f"{self.text(condition)}, {self.text(a)}, {self.text(b)}"
                return f"{_select(expr)}({sides})"
            case Intrinsic(name=name, args=args):
                return f"T.{name}({', '.join(map(self.text, args))})"
            case BufferLoad(buffer=buffer, indices=indices):
                return self.element(buffer, indices)

    def _binary(self, expr: Binary, around: int) -> str:
        if expr.kind in ("min", "max"):
            return f"T.{expr.kind}({self.text(expr.a)}, {self.text(expr.b)})"
        if expr.kind == "-" and _is_zero(expr.a) and not isinstance(expr.b, Imm):
            return _bracketed(f"-{self._text(expr.b, _UNARY)}", _UNARY, around)
        level = _LEVELS[expr.kind]
        left = self._text(expr.a, level + (expr.kind in COMPARISONS))
        right = self._text(expr.b, level + 1)
        return _bracketed(f"{left} {expr.kind} {right}", level, around)


def _call(expr: TirExpr) -> tuple[str, tuple[TirExpr, ...]]:
    """The function and the operands of an expression that prints as a call."""
    match expr:
        case Binary(kind="min" | "max" as kind, a=a, b=b):
            return f"T.{kind}", (a, b)
        case Intrinsic(name=name, args=args):
            return f"T.{name}", args
        case Select(condition=condition, a=a, b=b):
            return _select(expr), (condition, a, b)
        case _:
            return "", ()


def _select(expr: Select) -> str:
    return "T.if_then_else" if expr.lazy else "T.Select"


def _level(expr: TirExpr) -> int:
    """The precedence of `expr` if it is an infix operation, else 0."""
    return _LEVELS.get(expr.kind, 0) if isinstance(expr, Binary) else 0


def _is_zero(expr: TirExpr) -> bool:
    return isinstance(expr, Imm) and expr.value == 0 and math.copysign(1, expr.value) > 0


def _immediate(expr: Imm, around: int) -> str:
    """A literal: a bare number for ``int64``, else with its dtype."""
    if expr.dtype == "int64":
        text = str(int(expr.value))
        return _bracketed(text, _UNARY, around) if text[0] == "-" else text
    if expr.dtype == "bool":
        return f"T.bool({bool(expr.value)})"
    if not is_float(expr.dtype):
        return f"T.{expr.dtype}({int(expr.value)})"
    value = float(expr.value)
    written = repr(value) if math.isfinite(value) else f'"{value}"'
    return f"T.{expr.dtype}({written})"


def _bracketed(text: str, level: int, around: int) -> str:
    return f"({text})" if level < around else text
