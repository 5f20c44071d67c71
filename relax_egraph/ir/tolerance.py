"""The tolerance of a function: the error that its results may have for speed.

R.func_attr({"tolerance": 0.02})
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from relax_egraph.base.parameters import number
from relax_egraph.errors import IllFormed
from relax_egraph.ir.expr import Function

ATTRIBUTE = "tolerance"


def tolerance_of(name: str, attrs: Mapping[str, Any]) -> float:
    """The tolerance of the function `name` by its `attrs`; raises `IllFormed` for a bad one.

    For a product ``x @ w`` it is relative to ``|x| |w|``, the norms of a row and a column; for a
    convolution, to the root mean square of the results.
    """
    value = attrs.get(ATTRIBUTE, 0.0)
    if _is_tolerance(value):
        return float(value)
    needed = TOLERANCE.needs
    raise IllFormed(f"function {name!r}: {ATTRIBUTE} is {value!r}, needs {needed}")


TOLERANCE = number("a share from 0 to below 1, such as 0.02", lambda value: 0 <= value < 1)
"""The condition on tolerances: below 1, as results of an error of 1 need no computation."""


def _is_tolerance(value: object) -> bool:
    return TOLERANCE.has_type(value) and TOLERANCE.in_range(value)


def with_tolerance(function: Function, tolerance: float) -> Function:
    """`function` with the attribute `tolerance`; 0 is the absence of the attribute."""
    others = {k: v for k, v in function.attrs.items() if k != ATTRIBUTE}
    attribute = {ATTRIBUTE: float(tolerance)} if tolerance else {}
    return replace(function, attrs={**others, **attribute})
