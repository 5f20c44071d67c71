"""Elements that are no sums, as terms of the solver.

Floats are real numbers, booleans truth values.  Integers are whole numbers within the range of
their dtype, or bit vectors where there is arithmetic, which wraps around.  What is summed, or a
function without laws, is an unknown number, the same for equal operands.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np

from relax_egraph.ir.dtypes import is_float
from relax_egraph.prove.equality import Equality
from relax_egraph.prove.functions import CONSTANTS
from relax_egraph.prove.questions import z3
from relax_egraph.prove.reals import Comparison
from relax_egraph.prove.solver import Integers
from relax_egraph.prove.sums import Applied, Counted, Factor, Folded, Read, Sum, Term

Assumption = tuple[str, str, Sum]
"""Of the elements of an operand: its name, a kind of bound, and the bound."""


class Wraps(Exception):
    """There is arithmetic of integers."""


class Unknown(Exception):
    """The expression is not translated."""


class Translation:
    """Terms of the solver for elements."""

    def __init__(self, equality: Equality, bounds: Sequence[Assumption], bits: bool) -> None:
        self.equality = equality
        self.integers = Integers()
        self.bounds = bounds
        self.bits = bits
        self.assumed: list[Any] = []
        self.opaque: list[tuple[Factor, str, Any]] = []

    # ------------------------------------------------------------------------------------ sorts

    def number(self, value: Any, dtype: str) -> Any:
        """A constant."""
        if dtype == "bool":
            return z3().BoolVal(bool(value))
        if is_float(dtype):
            return z3().RealVal(str(value))
        if value.denominator != 1:
            raise Unknown
        if self.bits:
            return z3().BitVecVal(int(value), np.iinfo(dtype).bits)
        if not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
            raise Wraps
        return z3().IntVal(int(value))

    def unknown(self, name: str, dtype: str) -> Any:
        """An unknown number of `dtype`, within its range."""
        if dtype == "bool":
            return z3().Bool(name)
        if is_float(dtype):
            return z3().Real(name)
        if self.bits:
            return z3().BitVec(name, np.iinfo(dtype).bits)
        result = z3().Int(name)
        limits = np.iinfo(dtype)
        self.assumed += [result >= int(limits.min), result <= int(limits.max)]
        return result

    # ------------------------------------------------------------------------------------- terms

    def value(self, a: Sum, dtype: str) -> Any:
        """A sum as a term of `dtype`."""
        if a.number is not None:
            return self.number(a.number, dtype)
        single = a.factor
        if single is not None:
            return self.factor(single, dtype)
        if dtype == "bool":
            raise Unknown
        if not is_float(dtype) and not self.bits:
            raise Wraps
        total: Any = None
        for t in a.terms:
            term = self.term(t, dtype)
            total = term if total is None else total + term
        return total

    def term(self, t: Term, dtype: str) -> Any:
        """A product; one that is summed is an unknown number."""
        result = self.number(t.coefficient, dtype)
        if t.binders or t.where:
            whole = Folded("+", t.binders, t.where, Sum((Term(_ONE, t.factors),)), dtype)
            return result * self.any(whole, dtype)
        for f in t.factors:
            result = result * self.factor(f, dtype)
        return result

    def factor(self, f: Factor, dtype: str) -> Any:
        """A factor as a term of `dtype`."""
        match f:
            case Read():
                return self.converted(self.any(f, f.dtype), f.dtype, dtype)
            case Counted(value) if is_float(dtype):
                return z3().ToReal(self.integers.integer(value))
            case Counted(value) if dtype == "int64" and not self.bits:
                return self.integers.integer(value)
            case Applied(function, args, kind) if function in _TRUTHS or (
                kind == "bool" and function in _BITWISE
            ):
                return self.converted(self.truth(function, args, _dtype(kind)), "bool", dtype)
            case Applied("select", (condition, a, b)):
                test = self.value(condition, "bool")
                return z3().If(test, self.value(a, dtype), self.value(b, dtype))
            case Applied("max" | "min" as function, (a, b)) if dtype != "bool":
                x, y = self.value(a, dtype), self.value(b, dtype)
                less = self.less(x, y, dtype)
                return z3().If(less, y, x) if function == "max" else z3().If(less, x, y)
            case Applied("max" | "min" as function, (a, b)):
                join = z3().Or if function == "max" else z3().And
                return join(self.value(a, dtype), self.value(b, dtype))
            case Applied("abs", (a,)):
                x = self.value(a, dtype)
                if is_float(dtype):
                    return z3().If(x >= 0, x, -x)
                if dtype.startswith("uint"):
                    return x
                least = self.number(_fraction(np.iinfo(dtype).min), dtype)
                return z3().If(z3().Or(x >= 0, x == least), x, -x)
            case Applied("isnan" | "isinf" | "isfinite" as test, (a,)) if self.is_finite(a):
                return self.converted(z3().BoolVal(test == "isfinite"), "bool", dtype)
            case Applied("clamped", (bound,)):
                return self.clamped(bound, dtype)
            case Applied(name) if self.bits and name in _BITWISE:
                return _BITWISE[name](*(self.value(a, dtype) for a in f.args))
            case Applied(name) if not is_float(dtype) and not self.bits and name in _BITWISE:
                raise Wraps if dtype != "bool" else Unknown
            case _:
                return self.any(f, dtype)

    def is_finite(self, a: Sum) -> bool:
        """Whether an element is assumed to be finite."""
        f = a.factor
        return isinstance(f, Read) and (f.tensor, "finite") in {(n, k) for n, k, _ in self.bounds}

    def truth(self, function: str, args: Sequence[Sum], dtype: str) -> Any:
        """A comparison, or a connective."""
        if function in ("and", "or"):
            join = z3().And if function == "and" else z3().Or
            return join(*(self.value(a, "bool") for a in args))
        if function == "not":
            return z3().Not(self.value(args[0], "bool"))
        if dtype == "bool" and function in ("bitwise_and", "bitwise_or", "bitwise_xor"):
            x, y = (self.value(a, "bool") for a in args)
            join = {"bitwise_and": z3().And, "bitwise_or": z3().Or, "bitwise_xor": z3().Xor}
            return join[function](x, y)
        if dtype == "bool" and function == "bitwise_not":
            return z3().Not(self.value(args[0], "bool"))
        if function not in _COMPARISONS:
            raise Unknown
        x, y = (self.value(a, dtype) for a in args)
        if dtype == "bool":
            x, y = (z3().If(v, 1, 0) for v in (x, y))
            return _COMPARISONS[function](x, y)
        match function:
            case "==":
                return x == y
            case "!=":
                return x != y
            case "<":
                return self.less(x, y, dtype)
            case ">":
                return self.less(y, x, dtype)
            case "<=":
                return z3().Not(self.less(y, x, dtype))
            case _:
                return z3().Not(self.less(x, y, dtype))

    def less(self, x: Any, y: Any, dtype: str) -> Any:
        """``x < y``."""
        if self.bits and dtype.startswith("uint"):
            return z3().ULT(x, y)
        return x < y

    def clamped(self, bound: Sum, dtype: str) -> Any:
        """A bound of integers: whole, and within the range of the dtype."""
        f = bound.factor
        limits = np.iinfo(dtype)
        if isinstance(f, Applied) and f.function in ("inf", "-inf"):
            return self.number(_fraction(limits.max if f.function == "inf" else limits.min), dtype)
        if bound.number is not None:
            n = min(max(bound.number, limits.min), limits.max)
            return self.number(n, dtype)
        if self.bits:
            raise Unknown
        x = self.whole(bound)
        low, high = int(limits.min), int(limits.max)
        return z3().If(x < low, low, z3().If(x > high, high, x))

    def whole(self, bound: Sum) -> Any:
        """A symbolic number that is whole."""
        f = bound.factor
        if isinstance(f, Applied) and f.function in ("max", "min"):
            x, y = (self.clamped_free(a) for a in f.args)
            return z3().If((x < y) == (f.function == "max"), y, x)
        return self.clamped_free(bound)

    def clamped_free(self, bound: Sum) -> Any:
        """A symbolic number that is whole, or a constant."""
        if bound.number is not None:
            return z3().IntVal(int(bound.number))
        f = bound.factor
        if not isinstance(f, Applied) or not f.function.startswith("number "):
            raise Unknown
        name = f.function
        x = z3().Int(f"{name} whole")
        self.assumed.append(z3().Real(name) == z3().ToReal(x))
        return x

    def converted(self, value: Any, source: str, dtype: str) -> Any:
        """A truth value as a number, 0 or 1."""
        if source == dtype or (is_float(source) and is_float(dtype)):
            return value
        if source == "bool":
            one, zero = self.number(_ONE, dtype), self.number(_ONE - 1, dtype)
            return z3().If(value, one, zero)
        raise Unknown

    def any(self, f: Factor, dtype: str) -> Any:
        """An unknown number, the same for equal factors."""
        if isinstance(f, Applied) and f.function.startswith("number "):
            return self.symbol(f, dtype)
        for other, kind, known in self.opaque:
            if kind == dtype and self.equality.factors(f, other):
                return known
        made = self.unknown(f"element {len(self.opaque)}", dtype)
        self.opaque.append((f, dtype, made))
        if isinstance(f, Read):
            self.bound(f, made)
        if isinstance(f, Applied) and is_float(dtype):
            self.lawful(f, made)
        elif isinstance(f, Applied) and dtype != "bool" and not self.bits:
            with suppress(Unknown, Wraps):
                self.of_integers(f, made, dtype)
        return made

    def symbol(self, f: Applied, dtype: str) -> Any:
        """A number that a rule names."""
        if is_float(dtype):
            return z3().Real(f.function)
        if dtype == "bool":
            number = z3().Real(f.function)
            self.assumed.append(z3().Or(number == 0, number == 1))
            return number != 0
        if self.bits:
            return z3().BitVec(f"{f.function} {dtype}", np.iinfo(dtype).bits)
        whole = self.clamped_free(Sum((Term(_ONE, (f,)),)))
        limits = np.iinfo(dtype)
        self.assumed += [whole >= int(limits.min), whole <= int(limits.max)]
        return whole

    def lawful(self, f: Applied, made: Any) -> None:
        """What is known of the values of functions."""
        match f.function:
            case "exp":
                self.assumed.append(made > 0)
            case name if name in CONSTANTS:
                self.assumed.append(made > 0)
            case "sqrt" | "abs":
                self.assumed.append(made >= 0)
            case _:
                pass

    def of_integers(self, f: Applied, made: Any, dtype: str) -> None:
        """What is known of remainders of what is less, and of positions in another dtype."""
        match f:
            case Applied("truncmod", (a, b)):
                x, y = self.value(a, dtype), self.value(b, dtype)
                self.assumed.append(z3().Implies(z3().And(x >= 0, x < y), made == x))
            case Applied(name, (Sum(factor=Counted(value)),)) if name == f"to {dtype}":
                x, limits = self.integers.integer(value), np.iinfo(dtype)
                inside = z3().And(x >= int(limits.min), x <= int(limits.max))
                self.assumed.append(z3().Implies(inside, made == x))
            case _:
                pass

    def bound(self, f: Read, made: Any) -> None:
        """What is assumed of the elements of an operand."""
        for name, kind, limit in self.bounds:
            if name != f.tensor or self.bits or kind == "finite":
                continue
            of_bool = f.dtype == "bool"
            x = z3().If(made, z3().IntVal(1), z3().IntVal(0)) if of_bool else made
            of_dtype = limit.number is not None and not of_bool
            value = self.value(limit, f.dtype if of_dtype else "float64")
            relation = {">=": x >= value, "<=": x <= value, "!=": x != value}
            self.assumed.append(relation[kind])

    def assume_comparison(self, c: Comparison) -> None:
        """Assume a comparison of numbers of the rule."""
        if self.bits:
            return
        infinite = [v for v in (c.a, c.b) if _is_infinite(v)]
        if infinite:
            return
        try:
            x, y = self.value(c.a, "float64"), self.value(c.b, "float64")
        except Unknown:
            return
        relation = {"=": x == y, "!=": x != y, "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}
        self.assumed.append(relation[c.kind])


def _is_infinite(a: Sum) -> bool:
    f = a.factor
    return isinstance(f, Applied) and f.function in ("inf", "-inf", "nan")


def _dtype(kind: str) -> str:
    return "float64" if kind in ("float", "number") else kind


def _fraction(n: Any) -> Any:
    return _ONE * int(n)


_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_TRUTHS = frozenset(("and", "or", "not", *_COMPARISONS))
_BITWISE: Mapping[str, Callable[..., Any]] = {
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "bitwise_not": operator.invert,
}
_ONE = Fraction(1)
