"""Which functions of an element, as it is written, have a finite value for all finite operands."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from relax_egraph.ir.dtypes import INTEGERS
from relax_egraph.prove import reads
from relax_egraph.prove.conditions import Condition, Nonnegative
from relax_egraph.prove.digits import nonnegative
from relax_egraph.prove.functions import CONSTANTS, absolute
from relax_egraph.prove.polynomial import Index, Polynomial, variable
from relax_egraph.prove.reals import Comparison, as_float, excluded, symbols_of
from relax_egraph.prove.solver import Solver
from relax_egraph.prove.sums import Applied, Counted, Factor, Folded, Read, Sum, single
from relax_egraph.prove.tensors import counted

_LINEAR = frozenset(("at", "+", "-", "*", "fma", "abs", "select", "and", "or", "not"))
"""Functions that are infinite of infinite operands."""

_TOTAL = _LINEAR | {
    *("max", "min"),
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
                known = function in _LINEAR or function.startswith("to ")
                return () if known or self.has_value(function, args) else (f,)
            case _:
                return ()

    def has_value(self, function: str, args: Sequence[Sum]) -> bool:
        """Whether a function has a value for all numbers, and these are finite."""
        return function in _TOTAL and all(self.is_finite(a, function) for a in args)

    def is_finite(self, a: Sum, of: str = "") -> bool:
        """Whether an element, an operand of the function `of`, is NaN or finite where operands are.

        A finite number is the greatest of itself and -∞.
        """
        return all(self.is_finite_factor(f, of) for t in a.terms for f in t.factors)

    def is_finite_factor(self, f: Factor, of: str) -> bool:
        """The same of a factor."""
        match f:
            case Read(_, dtype):
                return self.finite or dtype in INTEGERS
            case Counted():
                return True
            case Applied(function, ()):
                plain = function in CONSTANTS
                return plain or reads.is_finite(function, self.numbers, of)
            case Applied("/" | "inverse", args):
                return self.is_not_zero(args[-1]) and all(map(self.is_finite, args))
            case Applied("sqrt" | "rsqrt" | "log", (x,)):
                return not self.partial(f) and self.is_finite(x)
            case Applied(function, args, dtype):
                plain = dtype in INTEGERS or function.startswith("to ")
                return all(map(self.is_finite, args)) if plain else self.has_value(function, args)
            case Folded("max" | "min", binders, where, of_all):
                some = not where and self.has_some(binders)
                return some and self.is_finite(of_all)
            case Folded(_, _, _, of_all):
                return self.is_finite(of_all)

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
        return sign if self.has_some(binders) else min(sign, NOT_NEGATIVE)

    def has_some(self, binders: Iterable[Index]) -> bool:
        """Whether variables are known to have values."""
        known = {c.key for c in self.solver.assumed}
        return all(c.key in known or self.solver.holds(c) for c in not_empty(binders))

    def of(self, f: Factor) -> int:
        """What is known of the sign of a factor."""
        match f:
            case Applied("exp", (x,)):  # 0 of -∞
                return POSITIVE if self.is_finite(x) else NOT_NEGATIVE
            case Applied("sqrt", (x,)):
                return max(NOT_NEGATIVE, self.sign(x))
            case Applied("abs", _):
                return NOT_NEGATIVE
            case Applied("*", (x, y)) if x.key == y.key:
                return max(NOT_NEGATIVE, self.sign(x))
            case Applied("*", (x, y)):
                return min(self.sign(x), self.sign(y))
            case Applied("/", (x, y)):
                some = POSITIVE if self.is_finite(y) else NOT_NEGATIVE
                return min(self.sign(x), self.sign(y), some)
            case Applied("+", (x, y)):
                signs = (self.sign(x), self.sign(y))
                return ANY if ANY in signs else max(signs)
            case Applied(function, ()) if function.startswith("number "):
                return self.of_number(single(f))
            case Counted(value):
                if nonnegative(value - 1):
                    return POSITIVE
                return NOT_NEGATIVE if self.solver.holds(Nonnegative(value)) else ANY
            case Folded("+", binders, (), of):
                with self.solver.scope(not_empty(binders)):
                    sign = self.sign(of)
                return self.of_all(binders, sign)
            case _:
                return ANY

    def of_number(self, a: Sum) -> int:
        """What is known of the sign of a number of the rule."""
        above = [c for c in self.numbers if c.high.key == a.key and c.kind not in ("=", "!=")]
        least = [(c, as_float(c.a if c.high is c.b else c.b)) for c in above]
        if any(x is not None and (x > 0 or (x == 0 and c.kind in "<>")) for c, x in least):
            return POSITIVE
        return NOT_NEGATIVE if any(x is not None and x >= 0 for _, x in least) else ANY


def not_empty(binders: Iterable[Index]) -> list[Condition]:
    """That variables have values: wherever something is of one."""
    return [Nonnegative(b.extent - 1) for b in binders]


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
