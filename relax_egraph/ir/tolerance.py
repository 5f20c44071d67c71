"""How far the results of a function may be off for speed, as it says itself.

R.func_attr({"tolerance": 0.02})
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from relax_egraph.errors import IllFormed
from relax_egraph.ir.expr import Function
from relax_egraph.parameters import number

ATTRIBUTE = "tolerance"


def tolerance_of(name: str, attrs: Mapping[str, Any]) -> float:
    """What the function `name` says in its `attrs`, else 0; raises `IllFormed` for no such number.

    Of a product ``x @ w`` it is a part of ``|x| |w|``, the norms of a row and a column; of a
    convolution a part of the root mean square of the results.
    """
    given = attrs.get(ATTRIBUTE, 0.0)
    if _is_tolerance(given):
        return float(given)
    needed = TOLERANCE.needs
    raise IllFormed(f"function {name!r}: {ATTRIBUTE} is {given!r}, needs {needed}")


TOLERANCE = number("a share from 0 to below 1, such as 0.02", lambda value: 0 <= value < 1)
"""What tolerances are: results that may be off by their whole size need not be computed."""


def _is_tolerance(value: object) -> bool:
    return TOLERANCE.has_type(value) and TOLERANCE.in_range(value)


def with_tolerance(function: Function, tolerance: float) -> Function:
    """`function`, which now says `tolerance`; 0 is said by saying nothing."""
    others = {k: v for k, v in function.attrs.items() if k != ATTRIBUTE}
    said = {ATTRIBUTE: float(tolerance)} if tolerance else {}
    return replace(function, attrs={**others, **said})
