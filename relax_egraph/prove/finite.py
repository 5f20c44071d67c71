"""Whether an element is finite or NaN where the operands are: an overflow counts as rounding."""

from collections.abc import Sequence

from relax_egraph.prove import reads
from relax_egraph.prove.questions import ask, z3
from relax_egraph.prove.reads import TESTS
from relax_egraph.prove.reals import Comparison
from relax_egraph.prove.specials import EFFORT, Assumptions, Specials
from relax_egraph.prove.sums import Applied, Counted, Folded, Read, Sum, factors_in

_FINITE = frozenset(
    (
        *("+", "-", "*", "max", "min", "abs", "exp", "sqrt", "sigmoid", "tanh", "erf"),
        *("sin", "cos", "floor", "ceil", "round", "trunc", "sign", "select", "and", "or", "not"),
    )
)
"""Functions that are finite or NaN of such operands, over the real numbers."""


def is_finite(a: Sum, assumed: Assumptions) -> bool:
    """Whether an element is proven to be finite or NaN, of operands that are."""
    if all(_is_plain(f, assumed.numbers) for f in factors_in(a)):
        return True
    if reads.has_reductions(a):
        return False
    into = Specials(assumed)
    value = into.value(a)
    for c in assumed.numbers:
        into.assume(c)
    infinite = (z3().Not(value.nan), value.sign != 0)
    return ask((*into.assumed, *into.integers.known, *infinite), EFFORT) == "impossible"


def is_number(a: Sum, numbers: Sequence[Comparison]) -> bool:
    """Whether a number of a rule is proven to be finite, as what it is computed of is."""
    factors = [*factors_in(a)]
    computed = all(isinstance(f, Applied) and f.function not in _MAY_BE_NAN for f in factors)
    return computed and all(_is_plain(f, numbers) for f in factors)


_MAY_BE_NAN = ("sqrt", *TESTS)


def _is_plain(f: object, numbers: Sequence[Comparison]) -> bool:
    match f:
        case Read() | Counted():
            return True
        case Folded(function):
            return function in ("+", "*")
        case Applied(function, ()) if function.startswith("number "):
            return reads.is_finite(function, numbers)
        case Applied("inverse", (x,)):
            return any(c.excludes(x, 0.0) for c in numbers)
        case Applied(function, args):
            return bool(args) and (function in _FINITE or function in TESTS)
        case _:
            return False
