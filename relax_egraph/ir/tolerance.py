"""How far the results of a function may be off for speed, as it says itself.

R.func_attr({"tolerance": 0.02})
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from relax_egraph.errors import IllFormed
from relax_egraph.ir.expr import Function

ATTRIBUTE = "tolerance"


def tolerance_of(name: str, attrs: Mapping[str, Any]) -> float:
    """What the function `name` says in its `attrs`, else 0; raises `IllFormed` for no such number.

    Of a product ``x @ w`` it is a part of ``|x| |w|``, the norms of a row and a column; of a
    convolution a part of the root mean square of the results.
    """
    given = attrs.get(ATTRIBUTE, 0.0)
    if is_tolerance(given):
        return float(given)
    raise IllFormed(f"function {name!r}: {ATTRIBUTE} is {given!r}, needs a finite number from 0 on")


def is_tolerance(value: object) -> bool:
    """Whether `value` is a number that is finite and not negative."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def with_tolerance(function: Function, tolerance: float) -> Function:
    """`function`, which now says `tolerance`; 0 is said by saying nothing."""
    others = {k: v for k, v in function.attrs.items() if k != ATTRIBUTE}
    said = {ATTRIBUTE: tolerance} if tolerance else {}
    return replace(function, attrs={**others, **said})
