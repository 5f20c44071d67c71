"""Queries of rules to sympy: the canonical text of a dimension, and the truth of a guard.

Rules call these functions, so they never raise, and their results depend only on the arguments
and the current assumptions.
"""

from relax_egraph.ir import dims

IS_NUMBER = "is-number"

_QUESTIONS = {"dim-equal": dims.equal, "dim-divides": dims.divides, "dim-ge": dims.prove_ge}


def canonical(written: str) -> str:
    """The canonical text of a dimension; `written` itself if it has no value."""
    try:
        return dims.text(dims.parse(written))
    except (ValueError, ZeroDivisionError):
        return written


def holds(guard: str, first: str, second: str) -> bool:
    """Whether a guard of two dimensions, as texts, is proven; or whether the first is a number."""
    if guard == IS_NUMBER:
        return first.isdecimal()
    try:
        return _QUESTIONS[guard](dims.parse(first), dims.parse(second))
    except (ValueError, ZeroDivisionError):
        return False
