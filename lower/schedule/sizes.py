"""Conditions on sizes, which are decided when a function is scheduled if the sizes are constant."""

from collections.abc import Callable

from relax_egraph.ir.dims import Dim
from relax_egraph.tir.expr import Binary, Imm, TirExpr, from_dim
from relax_egraph.tir.stmt import IfThenElse, Stmt

Condition = bool | TirExpr
"""The truth of a condition: an expression if it depends on run-time sizes."""


def choice(condition: Condition, yes: Callable[[], Stmt], no: Callable[[], Stmt]) -> Stmt:
    """The statement for a `condition`; the other one is not created if it is known."""
    if isinstance(condition, bool):
        return yes() if condition else no()
    return IfThenElse(condition, yes(), no())


def both(a: Condition, b: Condition) -> Condition:
    """Whether both conditions hold."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a and b if isinstance(a, bool) else b and a
    return Binary("and", a, b)


def exceeds(extent: Dim, number: int) -> Condition:
    """Whether `extent` is larger than `number`."""
    if isinstance(extent, int):
        return extent > number
    return Binary(">", from_dim(extent), Imm(number, "int64"))


def at_most(extent: Dim, number: int) -> Condition:
    """Whether `extent` is not larger than `number`."""
    if isinstance(extent, int):
        return extent <= number
    return Binary("<=", from_dim(extent), Imm(number, "int64"))
