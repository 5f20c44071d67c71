"""Which functions of an element, as it is written, have a finite value for all finite operands."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from relax_egraph.ir.dtypes import INTEGERS
from relax_egraph.prove.conditions import Nonnegative
from relax_egraph.prove.digits import nonnegative
from relax_egraph.prove.functions import absolute
from relax_egraph.prove.polynomial import Index, Polynomial, variable
from relax_egraph.prove.reals import Comparison, as_float, excluded, symbols_of
from relax_egraph.prove.solver import Solver
from relax_egraph.prove.sums import Applied, Counted, Factor, Folded, Sum, single
from relax_egraph.prove.tensors import counted

_LINEAR = frozenset(("at", "+", "-", "*", "fma", "max", "min", "abs", "select", "and", "or", "not"))
"""Functions that are infinite of infinite operands."""

_TOTAL = _LINEAR | {
    *("exp", "expm1", "sigmoid", "tanh", "erf", "sin", "cos"),
    *("floor", "ceil", "round", "trunc", "sign"),
}
"""Functions that have a value for all numbers."""

ANY, NOT_NEGATIVE, POSITIVE = range(3)
"""What is known of the sign of a number."""


@dataclass
class Totality:
    """Asks `solver` whether counts are 0; `numbers` of a rule are compared with constants.

    Operands are `finite`, or what is made of infinite ones counts, too.
    """

    solver: Solver
    numbers: Sequence[Comparison]
    finite: bool

    def partial(self, f: Factor) -> Sequence[Factor]:
        """What of a factor may have no value: divisors, and functions."""
        match f:
            case Applied("/", (_, x), "float") | Applied("inverse", (x,)):
                return (
                    ()
                    if self.is_not_zero(x)
                    else tuple(Applied("divisor", (d,)) for d in _divisors(x))
                )
            case Applied("rsqrt", (x,), dtype):
                root = Applied("sqrt", (x,), dtype)
                return (*self.partial(root), *self.partial(Applied("inverse", (single(root),))))
            case Applied("log" | "sqrt" as function, (x,)):
                least = NOT_NEGATIVE if function == "sqrt" else POSITIVE
                return () if self.sign(x) >= least else (f,)
            case Applied(function, args, dtype) if args and dtype not in INTEGERS:
                known = _TOTAL if self.finite else _LINEAR
                return () if function in known or function.startswith("to ") else (f,)
            case _:
                return ()

    def is_not_zero(self, a: Sum) -> bool:
        """Whether an element is known not to be 0: a number, by what it is compared with."""
        if a.number is not None:
            return a.number != 0
        sizes = (a, absolute(a)) if symbols_of(a) else ()
        return self.sign(a) == POSITIVE or any(excluded(self.numbers, x, 0.0) for x in sizes)

    def sign(self, a: Sum) -> int:
        """What is known of the sign of an element."""
        known = as_float(a)
        if known is not None:
            return POSITIVE if known > 0 else NOT_NEGATIVE if known == 0 else ANY
        terms = [
            self.of_all(t.binders, min(map(self.of, t.factors), default=POSITIVE))
            if t.coefficient > 0 and not t.where
            else ANY
            for t in a.terms
        ]
        return ANY if ANY in terms else max(terms, default=NOT_NEGATIVE)

    def of_all(self, binders: Iterable[Index], sign: int) -> int:
        """What is known of a sum over variables of elements of a sign; it may be of nothing."""
        some = all(self.solver.holds(Nonnegative(b.extent - 1)) for b in binders)
        return sign if some else min(sign, NOT_NEGATIVE)

    def of(self, f: Factor) -> int:
        """What is known of the sign of a factor."""
        match f:
            case Applied("exp", _):
                return POSITIVE
            case Applied("sqrt", (x,)):
                return max(NOT_NEGATIVE, self.sign(x))
            case Applied("abs", _):
                return NOT_NEGATIVE
            case Applied("*", (x, y)) if x.key == y.key:
                return max(NOT_NEGATIVE, self.sign(x))
            case Applied("*" | "/", (x, y)):
                return min(self.sign(x), self.sign(y))
            case Applied("+", (x, y)):
                signs = (self.sign(x), self.sign(y))
                return ANY if ANY in signs else max(signs)
            case Applied(function, ()) if function.startswith("number "):
                return self.of_number(single(f))
            case Counted(value):
                return POSITIVE if nonnegative(value - 1) else NOT_NEGATIVE
            case Folded("+", binders, where, of):
                return self.of_all(binders, self.sign(of)) if not where else ANY
            case _:
                return ANY

    def of_number(self, a: Sum) -> int:
        """What is known of the sign of a number of the rule."""
        above = [c for c in self.numbers if c.high.key == a.key and c.kind not in ("=", "!=")]
        least = [(c, as_float(c.a if c.high is c.b else c.b)) for c in above]
        if any(x is not None and (x > 0 or (x == 0 and c.kind in "<>")) for c, x in least):
            return POSITIVE
        return NOT_NEGATIVE if any(x is not None and x >= 0 for _, x in least) else ANY


def _divisors(x: Sum) -> Sequence[Sum]:
    """What a divisor is a product of, if that is of extents: it is 0 where one of them is."""
    if len(x.terms) != 1 or not all(isinstance(f, Counted) for f in x.terms[0].factors):
        return (x,)
    counts = (f.value for f in x.terms[0].factors if isinstance(f, Counted))
    return tuple(counted(p) for count in counts for p in _factors(count))


def _factors(p: Polynomial) -> Sequence[Polynomial]:
    if len(p.terms) != 1:
        return (p,)
    ((monomial, _),) = p.terms.items()
    return tuple(map(variable, monomial))
