"""Queries of rules to sympy: the canonical text of a dimension, and the truth of a guard.

Rules call these functions, so they never raise, and their results depend only on the argument
and the current assumptions.
"""

from relax_egraph.ir import dims

_GUARDS = {"dim-equal": dims.equal, "dim-divides": dims.divides, "dim-ge": dims.prove_ge}


def canonical(written: str) -> str:
    """The canonical text of a dimension; `written` itself if it has no value."""
    try:
        return dims.text(dims.parse(written))
    except (ValueError, ZeroDivisionError):
        return written


def holds(question: str) -> bool:
    """Whether a guard of two dimensions is proven: ``"dim-ge;n * 4;8"``."""
    guard, first, second = question.split(";")
    try:
        return _GUARDS[guard](dims.parse(first), dims.parse(second))
    except (ValueError, ZeroDivisionError):
        return False


def is_number(text: str) -> bool:
    """Whether the canonical text of a dimension is a number."""
    return text.isdecimal()
