"""NaN, infinities and divisions by 0: both sides have them for the same operands.

Elements are compared as numbers of the extended reals, with NaN, and their reductions as unknown
ones.  A comparison of floats, or an integer made of one, is an ordinary number of NaN: elements
with such have to have the same value then, too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from relax_egraph.ir.dtypes import INTEGERS, is_float
from relax_egraph.prove.equality import COMMUTATIVE
from relax_egraph.prove.extended import (
    Extended,
    chosen,
    compared,
    extreme,
    holds,
    inverse,
    ordered,
    plus,
    real,
    times,
    truth,
)
from relax_egraph.prove.functions import CONSTANTS
from relax_egraph.prove.questions import ask, z3
from relax_egraph.prove.reads import TESTS, places
from relax_egraph.prove.reals import Comparison
from relax_egraph.prove.solver import Integers
from relax_egraph.prove.sums import (
    Applied,
    Counted,
    Factor,
    Folded,
    Read,
    Sum,
    Term,
    apply,
    factors_in,
    number,
)
from relax_egraph.prove.translation import Assumption

_OF_ALL = TESTS | {"select", "max", "min"}
"""Functions of integers as of real numbers."""

_SYMMETRIC = COMMUTATIVE | {"+", "*"}

EFFORT = 6_000_000
"""The steps for one question, in the solver's measure."""


def functions_in(a: Sum) -> set[str]:
    """The functions that an element applies."""
    return {f.function for f in factors_in(a) if isinstance(f, Applied)}


@dataclass(frozen=True)
class Assumptions:
    """What is assumed of numbers and of elements; whether operands are `finite` or NaN."""

    numbers: Sequence[Comparison]
    bounds: Sequence[Assumption]
    finite: bool
    same: Callable[[Factor, Factor], bool]


def agree(a: Sum, b: Sum, dtype: str, assumed: Assumptions, *, valued: bool = False) -> bool | None:
    """Whether two elements are NaN and infinite for the same operands; ``None`` if it is unknown.

    If they are `valued`, what is neither has to be the same number.

    Operands are `finite` or NaN where the rule reassociates: what becomes of infinite ones counts
    as rounding.  Constants of a rule may be infinite.
    """
    functions = functions_in(a) | functions_in(b)
    into = Specials(replace(assumed, finite=assumed.finite and "pow" not in functions))
    x, y = into.value(a), into.value(b)
    for c in assumed.numbers:
        into.assume(c)
    # a product has the sign of its 0; of a sum, the sign of 0 is not described
    unsigned = into.divides and not {"+", "-"} & functions
    signed = z3().BoolVal(True) if unsigned else x.sign == y.sign
    same = z3().And(
        x.nan == y.nan, z3().Or(x.nan, z3().And((x.sign == 0) == (y.sign == 0), signed))
    )
    if dtype == "bool":
        same = holds(x) == holds(y)
    elif valued:
        plain = (z3().And(z3().Not(k.nan), k.sign == 0) for k in into.operands)
        ordinary = z3().And(*plain, z3().BoolVal(not (into.divides or into.reduces)))
        same = z3().And(same, z3().Or(ordinary, x.nan, x.sign != 0, x.real == y.real))
    answer = ask((*into.assumed, *into.integers.known, z3().Not(same)), EFFORT)
    return None if answer == "unknown" else answer == "impossible"


class Specials:
    """Elements as extended numbers."""

    def __init__(self, given: Assumptions) -> None:
        self.given = given
        self.finite = given.finite
        self.assumed: list[Any] = []
        self.known: dict[str, Extended] = {}
        self.reads: list[Read | Folded] = []
        self.operands: list[Extended] = []
        self.integers = Integers()
        self.divides = False

    @property
    def reduces(self) -> bool:
        """Whether an element is a reduction, of operands that may be no numbers."""
        return any(isinstance(f, Folded) for f in self.reads)

    def value(self, a: Sum) -> Extended:
        """A sum of products."""
        total: Extended | None = None
        for t in a.terms:
            term = self.summed(t) if t.binders or t.where else self.product(t)
            total = term if total is None else plus(total, term)
        return total or real(0)

    def summed(self, t: Term) -> Extended:
        """A sum over variables, of which nothing is known."""
        terms = Sum((replace(t, coefficient=number(1).terms[0].coefficient, binders=(), where=()),))
        whole = self.same(Folded("+", t.binders, t.where, terms, "float"))
        return times(real(t.coefficient), whole)

    def product(self, t: Term) -> Extended:
        """A product of factors."""
        result: Extended | None = None if t.coefficient == 1 and t.factors else real(t.coefficient)
        for f in t.factors:
            x = self.factor(f)
            result = x if result is None else times(result, x)
        return result or real(1)

    def factor(self, f: Factor) -> Extended:
        """A factor."""
        match f:
            case Read() | Folded():
                return self.same(f)
            case Counted(value):
                return real(z3().ToReal(self.integers.integer(value)))
            case Applied("inf" | "-inf" as name, ()):
                sign = 1 if name == "inf" else -1
                return Extended(z3().BoolVal(False), z3().IntVal(sign), z3().RealVal(0))
            case Applied("nan", ()):
                return Extended(z3().BoolVal(True), z3().IntVal(0), z3().RealVal(0))
            case Applied(function, ()) if function in CONSTANTS:
                self.assumed.append(z3().Real(function) > 0)
                return real(z3().Real(function))
            case Applied(function, ()):
                return self.operand(function, "number")
            case Applied(function, args, dtype):
                return self.applied(f.key, function, args, dtype)

    def same(self, f: Read | Folded) -> Extended:
        """An element of an operand, or a reduction; equal ones are one number."""
        for other in self.reads:
            if self.given.same(f, other):
                return self.known[other.key]
        self.reads.append(f)
        whole = isinstance(f, Read) or f.dtype in INTEGERS
        element = self.operand(f.key, f.dtype if whole else "number")
        if isinstance(f, Read):
            self.bound(f.tensor, element)
            for place in places(f.index):
                self.value(place)  # may be of no numbers
        return element

    def operand(self, key: str, dtype: str) -> Extended:
        """An element of an operand, or a number of the rule."""
        if key not in self.known:
            name = f"x{len(self.known)}"
            number = z3().Real(name)
            plain = dtype != "number" and not is_float(dtype)
            nan = z3().BoolVal(False) if plain else z3().Bool(f"{name} nan")
            sign = z3().IntVal(0) if plain or (self.finite and dtype != "number") else None
            if sign is None:
                sign = z3().Int(f"{name} sign")
                self.assumed += [sign >= -1, sign <= 1]
            if dtype == "bool":
                self.assumed.append(z3().Or(number == 0, number == 1))
            self.known[key] = Extended(nan, sign, number)
            self.operands.append(self.known[key])
        return self.known[key]

    def bound(self, tensor: str, element: Extended) -> None:
        """Assume the bounds of an element."""
        for name, kind, limit in self.given.bounds:
            if name != tensor:
                continue
            if kind == "finite":
                self.assumed += [z3().Not(element.nan), element.sign == 0]
            else:
                holds_ = compared(kind, element, self.value(limit))
                self.assumed.append(z3().Or(element.nan, holds_))

    def power(self, a: Sum, exponent: Any, key: str) -> Extended:
        """A power with a small exponent, a whole number or a half."""
        x = self.value(a)
        if exponent is None or exponent.denominator > 2 or abs(exponent) > 4:
            return self.unknown(key, [x])
        base = x
        if exponent.denominator == 2:  # of -∞ the root is NaN, and the power is not
            root = self.unary(key, "sqrt", x)
            below = z3().And(z3().Not(x.nan), x.sign < 0)
            base = chosen(below, Extended(z3().BoolVal(False), z3().IntVal(1), root.real), root)
        result = real(1)
        for _ in range(abs(exponent.numerator)):
            result = times(result, base)
        if exponent < 0:
            odd = exponent.denominator == 1 and exponent.numerator % 2
            return self.inverse(a if odd else apply("abs", a), result)
        return result

    def applied(self, key: str, function: str, args: Sequence[Sum], dtype: str) -> Extended:
        """A function of elements."""
        if function.startswith("to "):
            return self.converted(function, args[0], dtype)
        if dtype in INTEGERS and function not in _OF_ALL:
            return self.of_integers(function, args, dtype)
        values = [self.value(a) for a in args]
        if dtype == "number":  # what the minimum of NaN is, the engine does not say
            known = self.applied(key, function, args, "float")
            nan = z3().Bool(f"{key} nan")
            return Extended(z3().And(known.nan, nan), known.sign, known.real)
        match function, values:
            case "+", [x, y]:
                return plus(x, y)
            case "-", [x, y]:
                return plus(x, times(real(-1), y))
            case "*", [x, y]:
                return times(x, y)
            case "/", [x, y]:
                return times(x, self.inverse(args[1], y))
            case "inverse", [x]:
                return self.inverse(args[0], x)
            case "rsqrt", [x]:
                root = apply("sqrt", args[0], dtype=dtype)
                return self.inverse(root, self.value(root))
            case "pow", _:
                return self.power(args[0], args[1].number, key)
            case "max" | "min", [x, y]:
                return extreme(function == "max", x, y)
            case (("<" | "<=" | ">" | ">=" | "==" | "!="), [x, y]):
                return truth(compared(function, x, y))
            case (("and" | "or"), [x, y]):
                join = z3().And if function == "and" else z3().Or
                return truth(join(holds(x), holds(y)))
            case "not", [x]:
                return truth(z3().Not(holds(x)))
            case "select", [c, x, y]:
                return chosen(holds(c), x, y)
            case "abs", [x]:
                size = z3().If(x.real >= 0, x.real, -x.real)
                return Extended(x.nan, z3().If(x.sign == 0, 0, 1), size)
            case "log_add_exp", [x, y]:
                both = plus(self.unary(key, "exp", x), self.unary(key, "exp", y))
                return self.unary(key, "log", both)
            case "isnan", [x]:
                return truth(x.nan)
            case "isinf", [x]:
                return truth(z3().And(z3().Not(x.nan), x.sign != 0))
            case "isfinite", [x]:
                return truth(z3().And(z3().Not(x.nan), x.sign == 0))
            case _, [x]:
                return self.unary(key, function, x)
            case _:
                return self.unknown(key, values)

    def of_integers(self, function: str, args: Sequence[Sum], dtype: str) -> Extended:
        """An unknown function of integers, which may be made of floats that are no numbers."""
        order = sorted(args, key=lambda a: a.key) if function in _SYMMETRIC else args
        values = [self.value(a).real for a in order]
        sorts = [z3().RealSort()] * (len(values) + 1)
        return real(z3().Function(f"{function} of {dtype}", *sorts)(*values))

    def converted(self, function: str, a: Sum, source: str) -> Extended:
        """A number in another dtype; an integer of what is no number is any."""
        x, target = self.value(a), function.removeprefix("to ")
        if source == "bool":
            return truth(holds(x))
        reals = z3().RealSort()
        name = f"{function} of {source}"
        if is_float(target) and source not in INTEGERS:
            return Extended(x.nan, x.sign, z3().Function(name, reals, reals)(x.real))
        sorts = (z3().BoolSort(), z3().IntSort(), reals, reals)
        y = z3().Function(name, *sorts)(x.nan, x.sign, x.real)
        if is_float(target):  # a number of its sign, 0 of 0 only
            self.assumed += [(x.real > 0) == (y > 0), (x.real < 0) == (y < 0)]
        return real(y)

    def inverse(self, divisor: Sum, x: Extended) -> Extended:
        """``1 / x``; the sign of 0 is known of operands, where it is positive, and of sizes."""
        self.divides = True
        q = z3().Real(f"{divisor.key} inverse {len(self.assumed)}")
        self.assumed.append(z3().Implies(x.real != 0, q * x.real == 1))
        negative = z3().Bool(f"{divisor.key} is below 0")
        return inverse(x, q, 1 if _has_plain_zero(divisor) else z3().If(negative, -1, 1))

    def unary(self, key: str, function: str, x: Extended) -> Extended:
        """A function of one number, strict in NaN."""
        y = z3().Function(f"real {function}", z3().RealSort(), z3().RealSort())(x.real)
        match function:
            case "exp":
                self.assumed.append(y > 0)
                value = z3().If(x.sign < 0, z3().RealVal(0), y)
                return Extended(x.nan, z3().If(x.sign > 0, 1, 0), value)
            case "expm1":
                return plus(self.unary(key, "exp", x), real(-1))
            case "log1p":
                return self.unary(key, "log", plus(x, real(1)))
            case "log":
                nan = z3().Or(x.nan, x.sign < 0, z3().And(x.sign == 0, x.real < 0))
                low = z3().And(x.sign == 0, x.real == 0)
                self.divides = True
                return Extended(nan, z3().If(x.sign > 0, 1, z3().If(low, -1, 0)), y)
            case "sqrt":
                nan = z3().Or(x.nan, x.sign < 0, z3().And(x.sign == 0, x.real < 0))
                self.assumed += [y >= 0, z3().Implies(x.real >= 0, y * y == x.real)]
                return Extended(nan, z3().If(x.sign > 0, 1, 0), y)
            case "sigmoid" | "tanh" | "erf":
                least = 0 if function == "sigmoid" else -1
                value = z3().If(x.sign > 0, z3().RealVal(1), z3().RealVal(least))
                return Extended(x.nan, z3().IntVal(0), z3().If(x.sign == 0, y, value))
            case _:
                return self.unknown(key, [x])

    def unknown(self, key: str, values: Sequence[Extended]) -> Extended:
        """A function of which nothing is known: the same for equal operands."""
        if key not in self.known:
            name = f"f{len(self.known)}"
            self.known[key] = Extended(z3().Bool(f"{name} nan"), z3().Int(name), z3().Real(name))
        return self.known[key]

    def assume(self, c: Comparison) -> None:
        """Assume a comparison of numbers of a rule."""
        kind = "==" if c.kind == "=" else c.kind
        self.assumed.append(ordered(kind, self.value(c.a), self.value(c.b)))


def _has_plain_zero(a: Sum) -> bool:
    """Whether 0 of an element is no -0: of an operand, where that is rounding, or of a size."""
    match a.factor:
        case Read() | Counted():
            return True
        case Applied(function, args):
            return not args or function in ("abs", "sqrt", "exp")
        case _:
            return a.number is not None
