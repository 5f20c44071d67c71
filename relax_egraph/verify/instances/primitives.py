"""Primitives and functions of egglog in Python, to decide premises without egglog.

Vectors are tuples, and dimensions are those of `dims`.  Premises with other names are left to
egglog.
"""

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from relax_egraph.egraph.functions.function import FUNCTIONS
from relax_egraph.egraph.rulebook.vocabulary import DIM_OPERATORS
from relax_egraph.ir import dims
from relax_egraph.ir.expr import PrimValue


class Fails(Exception):
    """A primitive has no value for these arguments: the premise does not hold."""


def computes(head: str) -> bool:
    """Whether `head` is a primitive of this module or a declared function."""
    return head in PRIMITIVES or head in FUNCTIONS


def compute(head: str, args: tuple[Any, ...]) -> Any:
    """The value of ``(head args..)``; raises `Fails` if it has none.

    Raises `SaturationError` if a function fails, or has two values for the same arguments.
    """
    if head in FUNCTIONS:
        value = FUNCTIONS[head].twice(args)
        if value is None:
            raise Fails
        return value
    try:
        return PRIMITIVES[head](*args)
    except (ArithmeticError, IndexError, TypeError, ValueError):
        raise Fails from None


def _get(items: tuple[Any, ...], at: int) -> Any:
    if at < 0:
        raise IndexError
    return items[at]


def _set(items: tuple[Any, ...], at: int, value: Any) -> tuple[Any, ...]:
    _get(items, at)
    return (*items[:at], value, *items[at + 1 :])


def _remove(items: tuple[Any, ...], at: int) -> tuple[Any, ...]:
    _get(items, at)
    return (*items[:at], *items[at + 1 :])


def _pop(items: tuple[Any, ...]) -> tuple[Any, ...]:
    return items[:-1]  # of an empty vector, that vector


def _function(name: str, *first: Any) -> tuple[Any, ...]:
    return (name, *first)


def _map(function: tuple[Any, ...], items: tuple[Any, ...]) -> tuple[Any, ...]:
    name, *first = function
    return tuple(PRIMITIVES[name](*first, item) for item in items)


def _divide(a: Any, b: Any) -> Any:
    if isinstance(a, float):
        return a / b
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _remainder(a: Any, b: Any) -> Any:
    if not isinstance(a, float):
        return a - b * _divide(a, b)
    return math.nan if math.isinf(a) and b else math.fmod(a, b)


def _power(a: Any, b: Any) -> Any:
    """The power of floats; of integers, the exclusive or of their bits."""
    if isinstance(a, int):
        return a ^ b
    with np.errstate(all="ignore"):
        return float(np.float_power(a, b))


def _logarithm(n: int) -> int:
    """The integer logarithm to base 2."""
    if n <= 0:
        raise ValueError
    return n.bit_length() - 1


def _to_integer(number: float) -> int:
    """The nearest integer towards 0, within 64 bits; that of NaN is 0."""
    if math.isnan(number):
        return 0
    return int(min(max(number, -(2.0**63)), 2**63 - 1))


def _least(a: Any, b: Any) -> Any:
    return min(a, b, key=in_order)


def _greatest(a: Any, b: Any) -> Any:
    return max(a, b, key=in_order)


def in_order(number: Any) -> tuple[bool, Any]:
    """What orders numbers as the engine does: NaN is above all others, and equal to itself."""
    is_nan = isinstance(number, float) and math.isnan(number)
    return is_nan, 0 if is_nan else number


def _vector(*items: Any) -> tuple[Any, ...]:
    return items


def _pushed(items: tuple[Any, ...], last: Any) -> tuple[Any, ...]:
    return (*items, last)


def _appended(*parts: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(item for part in parts for item in part)


def _lacks(items: tuple[Any, ...], item: Any) -> bool:
    return item not in items


def _range(n: int) -> tuple[int, ...]:
    return tuple(range(n))


def _difference(a: Any, *b: Any) -> Any:
    return a - b[0] if b else -a


def _nothing() -> None:
    return None


def _known(d: dims.Dim) -> bool:
    return isinstance(d, int)


def _prim_dim(d: dims.Dim, dtype: str) -> PrimValue:
    return PrimValue(d, dtype)


def _prim_number(number: float, dtype: str) -> PrimValue:
    return PrimValue(number, dtype)


def argument(head: str, args: tuple[Any, ...], at: int, result: Any, upward: bool) -> Any:
    """The value of argument `at`, the only unknown one, for which the result is `result`.

    `upward` chooses between numbers that round to the same result.  Raises `Fails` without a value.
    """
    try:
        match head, at:
            case "to-string", 0:
                return int(result)
            case "to-f64", 0 if result == int(result):
                return int(result)
            case "to-i64", 0:
                return float(result) + 0.5 * upward
            case "DimSym", 0:
                return dims.text(result)
            case "+", _:
                return result - args[1 - at]
            case "-", 0 if len(args) == 2:
                return result + args[1]
            case "-", 1:
                return args[0] - result
            case "*", _ if isinstance(result, float):
                return result / args[1 - at]
            case "/", 0 if isinstance(result, float):
                return result * args[1]
            case "/", 1 if isinstance(result, float):
                return args[0] / result
            case _:
                raise Fails
    except (ArithmeticError, TypeError, ValueError):
        raise Fails from None


PRIMITIVES: Mapping[str, Callable[..., Any]] = {
    "vec-of": _vector,
    "vec-empty": _vector,
    "vec-get": _get,
    "vec-length": len,
    "vec-push": _pushed,
    "vec-pop": _pop,
    "vec-append": _appended,
    "vec-set": _set,
    "vec-remove": _remove,
    "vec-contains": operator.contains,
    "vec-not-contains": _lacks,
    "vec-range": _range,
    "unstable-fn": _function,
    "unstable-vec-map": _map,
    "+": operator.add,
    "-": _difference,
    "*": operator.mul,
    "/": _divide,
    "%": _remainder,
    "neg": operator.neg,
    "abs": abs,
    "min": _least,
    "max": _greatest,
    "not": operator.not_,
    "and": operator.and_,
    "or": operator.or_,
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log": math.log,
    "log2": _logarithm,
    "pow": pow,
    "^": _power,
    "to-f64": float,
    "to-i64": _to_integer,
    "to-string": str,
    **{
        prefix + sign: compare
        for prefix in ("", "bool-")
        for sign, compare in (
            *(("<", operator.lt), ("<=", operator.le), (">", operator.gt), (">=", operator.ge)),
            ("!=", operator.ne),
        )
    },
    "bool-=": operator.eq,
    "DimSym": dims.parse,
    **{head: dims.ALGEBRA.operators[sign] for head, sign in DIM_OPERATORS.items()},
    "dim-text": dims.text,
    "dim-equal": dims.equal,
    "dim-divides": dims.divides,
    "dim-ge": dims.prove_ge,
    "is-static": _known,
    "product": dims.product,
    "Prim.dim": _prim_dim,
    "Prim.number": _prim_number,
    "Prim.none": _nothing,
}
"""The primitives by name."""
