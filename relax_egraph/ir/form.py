"""The form of a dimension: a tree of integers, symbols and the operators ``+ - * // % min max``.

A dimension is translated by folding its form: an `Algebra` is the table of what numbers, symbols
and operators become, as text, index arithmetic or code.  `ir.dim_form` reads the form of a sympy
expression, `read` that of a Python expression.  Executables are loaded without sympy, which is not
imported here.
"""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Generic, Literal, TypeAlias, TypeVar

T = TypeVar("T")

Sign: TypeAlias = Literal["+", "-", "*", "//", "%", "min", "max"]
Operator: TypeAlias = Literal["neg"] | Sign


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator and its operands.

    ``neg`` has one operand; ``*``, ``min`` and ``max`` have two or more; all others have two.
    """

    operator: Operator
    operands: "tuple[Form, ...]"


Form: TypeAlias = int | str | Operation
"""An integer, the name of a symbol, or an operation."""


@dataclass(frozen=True, slots=True)
class Algebra(Generic[T]):
    """What each node of a form becomes; an operator takes what its operands became."""

    number: Callable[[int], T]
    symbol: Callable[[str], T]
    operators: Mapping[str, Callable[..., T]]


def fold(form: Form, to: Algebra[T]) -> T:
    """What `form` becomes, from its leaves up and from left to right."""

    def folded(node: Form) -> T:
        match node:
            case int():
                return to.number(node)
            case str():
                return to.symbol(node)
            case Operation():
                return to.operators[node.operator](*map(folded, node.operands))

    return folded(form)


def leftward(function: Callable[[T, T], T]) -> Callable[..., T]:
    """`function` of two operands as one of several: ``f(f(a, b), c)``."""

    def of_several(*operands: T) -> T:
        return reduce(function, operands)

    return of_several


INTEGERS: Mapping[str, Callable[..., int]] = {
    "neg": int.__neg__,
    "+": int.__add__,
    "-": int.__sub__,
    "*": leftward(int.__mul__),
    "//": int.__floordiv__,
    "%": int.__mod__,
    "min": min,
    "max": max,
}
"""The operators on integers."""

SIGNS: Mapping[type[ast.AST], Sign] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Mod: "%",
}
"""The operators that Python writes between their operands."""

EXTREMES: Mapping[str, Sign] = {"min": "min", "max": "max"}
"""The operators that Python writes as calls."""

FUNCTIONS: Mapping[str, Sign] = {
    "T.min": "min",
    "T.max": "max",
    "T.floordiv": "//",
    "T.floormod": "%",
    "min": "min",
    "max": "max",
    "floordiv": "//",
    "floormod": "%",
}
"""The operators that scripts write as calls."""


def read(
    expression: ast.expr,
    leaf: Callable[[ast.expr], Form],
    functions: Mapping[str, Sign] = FUNCTIONS,
) -> Form:
    """The form of a Python expression; `leaf` reads what is neither a number nor an operation."""

    def form(node: ast.expr) -> Form:
        match node:
            case ast.Constant(value=int(value)) if not isinstance(value, bool):
                return value
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return Operation("neg", (form(operand),))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in SIGNS:
                return Operation(SIGNS[type(op)], (form(left), form(right)))
            case ast.Call(func=func, args=[_, _, *more] as operands, keywords=[]):
                called = functions.get(ast.unparse(func))
                if called is not None and (called in EXTREMES or not more):
                    return Operation(called, tuple(map(form, operands)))
            case _:
                pass
        return leaf(node)

    return form(expression)
