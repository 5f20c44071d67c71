"""The scalar functions of the loop language: operands, and meaning in numpy."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from relax_egraph.ir.dtypes import is_float

PREDICATES = frozenset({"isfinite", "isinf", "isnan"})
"""The functions whose result is of dtype ``bool``."""

BITWISE = frozenset({"bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor"})
"""The functions of integers and of booleans, bit by bit."""

INTEGER = frozenset({"shift_left", "shift_right", "truncmod"})
"""The functions of integers only.

A shift by less than 0, or by the width or more, gives 0, or -1 for a negative number that is
shifted to the right.  The remainder of a division by 0 is 0.
"""

ANY = frozenset({"abs", "fma"})
"""The functions of every dtype; of booleans ``fma`` is *or* of *and*."""

SIMPLE = (
    BITWISE
    | PREDICATES
    | ANY
    | {
        *("shift_left", "shift_right", "copysign"),
        *("ceil", "floor", "nearbyint", "round", "trunc"),
    }
)
"""The functions that are one instruction, or a few."""


def takes(name: str, dtype: str) -> bool:
    """Whether the function `name` accepts `dtype`; by default functions accept floats."""
    if name in ANY:
        return True
    if is_float(dtype):
        return name not in BITWISE | INTEGER
    return name in BITWISE or (name in INTEGER and dtype != "bool")


def _rsqrt(x: Any) -> Any:
    return 1 / np.sqrt(x)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _fma(a: Any, b: Any, c: Any) -> Any:
    """``a · b + c`` in float64: exact for float32, except that it is rounded twice."""
    if isinstance(a, np.floating):
        return np.float64(a) * np.float64(b) + np.float64(c)
    return np.add(np.multiply(a, b), c)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "abs": np.abs,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "bitwise_and": np.bitwise_and,
    "bitwise_not": np.invert,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "ceil": np.ceil,
    "copysign": np.copysign,
    "cos": np.cos,
    "cosh": np.cosh,
    "erf": math.erf,
    "exp": np.exp,
    "exp_nonpositive": np.exp,
    "expm1": np.expm1,
    "floor": np.floor,
    "fma": _fma,
    "fmod": np.fmod,
    "isfinite": np.isfinite,
    "isinf": np.isinf,
    "isnan": np.isnan,
    "log": np.log,
    "log1p": np.log1p,
    "nearbyint": np.rint,
    "pow": np.power,
    "round": np.rint,
    "rsqrt": _rsqrt,
    "shift_left": np.left_shift,
    "shift_right": np.right_shift,
    "sigmoid": _sigmoid,
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
    "trunc": np.trunc,
    "truncmod": np.fmod,
}
"""By name: ``T.exp(x)``.

``nearbyint`` and ``round`` give the even one of two integers that are equally near, as in TVM.
``exp_nonpositive`` is ``exp`` of a number that is at most 0; its relative error is that of rounding
the number: it suits a rounded difference ``x - max x``.  ``fmod`` of floats and ``truncmod`` of
integers have the sign of the dividend.
"""

_OPERANDS = {
    **dict.fromkeys(("atan2", "copysign", "fmod", "pow", "truncmod"), 2),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), 2),
    **dict.fromkeys(("shift_left", "shift_right"), 2),
    "fma": 3,
}

INTRINSICS: Mapping[str, int] = {name: _OPERANDS.get(name, 1) for name in FUNCTIONS}
"""The number of operands, by name."""
