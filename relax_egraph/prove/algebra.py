"""The algebras in which elements are read: sums of products, and terms as they are written.

Sums of products are of real numbers, or of integers modulo a power of 2.  Written terms keep every
operation, so that what becomes of NaN and infinities can be read off.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from relax_egraph.egraph.functions.builtin import dtype_holds
from relax_egraph.ir.dtypes import INTEGERS, is_float
from relax_egraph.prove import functions
from relax_egraph.prove.sums import (
    Applied,
    Counted,
    Read,
    Sum,
    add,
    apply,
    multiply,
    number,
    scale,
)


@dataclass(frozen=True)
class Algebra:
    """The operations on elements, and the reductions that are `sums` of products."""

    arithmetic: Callable[[str, Sum, Sum, str], Sum]
    function: Callable[[str, Sequence[Sum], str], Sum]
    sums: frozenset[str]


def _arithmetic(kind: str, a: Sum, b: Sum, dtype: str) -> Sum:
    return _wrapped(_unwrapped(kind, a, b, dtype), dtype)


def _wrapped(a: Sum, dtype: str) -> Sum:
    """A constant of integers, modulo 2ᵏ."""
    if dtype not in INTEGERS or a.number is None or is_value_of(a, dtype):
        return a
    least, count = np.iinfo(dtype).min, 1 << np.iinfo(dtype).bits
    return number((a.number - int(least)) % count + int(least))


def _unwrapped(kind: str, a: Sum, b: Sum, dtype: str) -> Sum:
    if kind in ("==", "!="):
        a, b, dtype = unconverted(a, b, dtype)
    if dtype != "bool":
        match kind:
            case "+":
                return add(a, b)
            case "-":
                return add(a, scale(b, Fraction(-1)))
            case "*":
                product = functions.times if is_float(dtype) else _whole_product
                return product(a, b)
            case "/" if is_float(dtype):
                return functions.times(a, functions.inverse(b))
            case "//" if not is_float(dtype) and b.number == 1:
                return a
            case "%" if not is_float(dtype) and _is_remainder("%", a, b, dtype):
                return a
            case "max" | "min":
                return extreme(kind, a, b, dtype)
            case _:
                pass
    return apply(kind, a, b, dtype=kind_of(dtype))


def _whole_product(a: Sum, b: Sum) -> Sum:
    return functions.squared(multiply(a, b))


def unconverted(a: Sum, b: Sum, dtype: str) -> tuple[Sum, Sum, str]:
    """Two numbers that are compared, and their dtype, before a conversion without loss."""
    f = a.factor
    if not isinstance(f, Applied) or f.function != f"to {dtype}" or b.number is None:
        return a, b, dtype
    if dtype_holds(dtype, f.dtype) and is_value_of(b, f.dtype):
        return f.args[0], b, f.dtype
    return a, b, dtype


def extreme(kind: str, a: Sum, b: Sum, dtype: str) -> Sum:
    """The greater of two elements, or the lesser: what is infinite is neutral, or all."""
    neutral, whole = ("-inf", "inf") if kind == "max" else ("inf", "-inf")
    for x, y in ((a, b), (b, a)):
        if _is_infinite(y, neutral):
            return x
    for x in (a, b):
        if _is_infinite(x, whole):
            return x
    return apply(kind, a, b, dtype=kind_of(dtype))


def _function(name: str, args: Sequence[Sum], dtype: str) -> Sum:
    if name in functions.FUNCTIONS and is_float(dtype):
        return functions.FUNCTIONS[name](*args)
    if name in ("shift_left", "shift_right") and args[1].number == 0:
        return args[0]
    if name == "truncmod" and _is_remainder(name, args[0], args[1], dtype):
        return args[0]
    return apply(name, *args, dtype=kind_of(dtype))


def _is_remainder(name: str, a: Sum, b: Sum, dtype: str) -> bool:
    """Whether an integer is what a division by `b` leaves."""
    f = a.factor
    return isinstance(f, Applied) and (f.function, f.dtype, f.args[1:]) == (name, dtype, (b,))


def _is_infinite(a: Sum, name: str) -> bool:
    f = a.factor
    return isinstance(f, Applied) and f.function == name


def _written_arithmetic(kind: str, a: Sum, b: Sum, dtype: str) -> Sum:
    return apply(kind, a, b, dtype=kind_of(dtype))


def _written_function(name: str, args: Sequence[Sum], dtype: str) -> Sum:
    match name:
        case "fma":
            product = _written_arithmetic("*", args[0], args[1], dtype)
            return _written_arithmetic("+", product, args[2], dtype)
        case _:
            return apply(name, *args, dtype=kind_of(dtype))


def _semiring(kind: str, a: Sum, b: Sum, dtype: str) -> Sum:
    if dtype == "bool" and kind in ("or", "and"):
        return add(a, b) if kind == "or" else multiply(a, b)
    return _arithmetic(kind, a, b, dtype)


PRODUCTS = Algebra(_arithmetic, _function, frozenset(("+",)))
"""Sums of products."""

SEMIRING = Algebra(_semiring, _function, frozenset(("+", "max of bool")))
"""Sums of products, also of booleans: an equation without subtraction holds in every semiring."""

WRITTEN = Algebra(_written_arithmetic, _written_function, frozenset())
"""Terms as they are written."""


def converted(value: Sum, source: str, target: str) -> Sum:
    """`value` in another dtype; the way through a dtype that holds every value is none."""
    f = value.factor
    if isinstance(f, Read):  # conversions that keep every value are not written
        source = f.dtype
    if source == target or _is_held(value, source, target):
        return value
    if isinstance(f, Applied) and f.function == f"to {source}" and _is_no_detour(f, source, target):
        return converted(f.args[0], f.dtype, target)
    if is_float(source) and is_float(target) and dtype_holds(target, source):
        return value
    return apply(f"to {target}", value, dtype=source)


def cast(algebra: Algebra, value: Sum, source: str, target: str) -> Sum:
    """`value` in another dtype; in ``bool``, whether it is not 0."""
    if target == "bool" != source:
        return algebra.arithmetic("!=", value, Sum(), source)
    return converted(value, source, target)


def _is_no_detour(f: Applied, way: str, target: str) -> bool:
    """Whether a conversion by `way` is none: a great integer wraps, and as a float it does not."""
    if not dtype_holds(way, f.dtype):
        return False
    return not is_float(way) or is_float(target) or dtype_holds(target, f.dtype)


def _is_held(value: Sum, source: str, target: str) -> bool:
    """Whether `target` has `value`, which `source` has."""
    if source == "bool":
        return _is_truth(value)
    if _is_count(value):
        return is_float(target) or (target == "int64" and not is_float(source))
    if value.number is None or target == "bool":
        return False
    if is_float(target):
        return is_float(source) or abs(value.number) <= 1 << _DIGITS[target]
    return is_value_of(value, target)


_DIGITS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
"""The binary digits of floats: integers to this power of 2 are floats."""


def _is_truth(value: Sum) -> bool:
    """Whether a truth value is the number 0 or 1, and no sum that stands for a disjunction."""
    if value.number is not None:
        return value.number in (0, 1)
    if len(value.terms) != 1 or value.terms[0].coefficient != 1 or value.terms[0].binders:
        return False
    made = (f for f in value.terms[0].factors if isinstance(f, Applied) and f.dtype == "bool")
    return all(_is_truth(a) for f in made for a in f.args)


def kind_of(dtype: str) -> str:
    """The dtype; all floats are real numbers."""
    return "float" if is_float(dtype) else dtype


def chosen(condition: Sum, a: Sum, b: Sum, dtype: str) -> Sum:
    """`a` where a boolean element holds, else `b`."""
    if condition.number is not None:
        return a if condition.number else b
    return a if a.key == b.key else apply("select", condition, a, b, dtype=kind_of(dtype))


def _is_count(value: Sum) -> bool:
    """Whether a number is a product of extents."""
    factors = [f for t in value.terms for f in t.factors]
    if len(value.terms) != 1 or value.terms[0].coefficient.denominator != 1:
        return False
    plain = not value.terms[0].binders and not value.terms[0].where
    return plain and bool(factors) and all(isinstance(f, Counted) for f in factors)


def is_value_of(value: Sum, dtype: str) -> bool:
    """Whether `dtype` may have this value; a symbolic number may be one."""
    if is_float(dtype) or value.number is None:
        f = value.factor
        special = isinstance(f, Applied) and f.function in ("inf", "-inf", "nan")
        return is_float(dtype) or not special
    n = value.number
    least, most = limits_of(dtype)
    return n.denominator == 1 and least <= n <= most


def limits_of(dtype: str) -> tuple[int, int]:
    """The least and the greatest integer of a dtype, or of truth values."""
    return (0, 1) if dtype == "bool" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
