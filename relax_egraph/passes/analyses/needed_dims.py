"""Which dimensions a sequence of bindings computes, and which of them may have no value."""

import sympy

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, Function, If, PrimValue, SeqExpr, ShapeExpr
from relax_egraph.ir.symbol_ranges import memoised
from relax_egraph.ir.walk import children


def needed_dims(seq: SeqExpr) -> list[Dim]:
    """The computed dimensions that `seq` needs whatever its conditions are, in order."""
    found: dict[Dim, None] = {}

    def note(expr: Expr) -> None:
        match expr:
            case ShapeExpr(values=values):
                found.update(dict.fromkeys(filter(is_computed, values)))
            case PrimValue(value=sympy.Expr() as dim) if is_computed(dim):
                found[dim] = None
            case If(cond=cond):
                note(cond)
            case Function():
                pass
            case _:
                for child in children(expr):
                    note(child)

    note(seq)
    return list(found)


def is_computed(dim: Dim) -> bool:
    """Whether `dim` is neither a number nor a symbol alone."""
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
