"""The dimensions that a sequence of bindings computes, and whether they may be undefined."""

import sympy

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, Function, If, PrimValue, SeqExpr, ShapeExpr
from relax_egraph.ir.symbol_ranges import memoised
from relax_egraph.ir.walk import children


def needed_dims(seq: SeqExpr) -> list[Dim]:
    """The computed dimensions that `seq` needs on every path, in order."""
    needed: dict[Dim, None] = {}

    def note(expr: Expr) -> None:
        match expr:
            case ShapeExpr(values=values):
                needed.update(dict.fromkeys(filter(is_computed, values)))
            case PrimValue(value=sympy.Expr() as dim) if is_computed(dim):
                needed[dim] = None
            case If(cond=cond):
                note(cond)
            case Function():
                pass
            case _:
                for child in children(expr):
                    note(child)

    note(seq)
    return list(needed)


def is_computed(dim: Dim) -> bool:
    """Whether `dim` is neither a number nor a bare symbol."""
    return not isinstance(dim, int | sympy.Symbol)


@memoised
def may_fail(dim: Dim) -> bool:
    """Whether `dim` may divide by zero."""
    parts = () if isinstance(dim, int) else sympy.preorder_traversal(dim)
    return not all(dims.prove_ge(divisor, 1) for p in parts for divisor in _divisors(p))


def _divisors(part: sympy.Basic) -> tuple[Dim, ...]:
    match part:
        case sympy.Mod(args=(_, divisor)):
            return (dims.canonical(divisor),)
        case sympy.Pow(args=(base, exponent)) if exponent.is_negative:
            return (dims.canonical(base),)
        case _:
            return ()
