"""What rules ask of sympy: the canonical text of a dimension, and whether a guard holds.

Called from within rules, so nothing here raises, and answers depend on the arguments and the
assumptions alone.
"""

from relax_egraph.ir import dims

IS_NUMBER = "is-number"

_QUESTIONS = {"dim-equal": dims.equal, "dim-divides": dims.divides, "dim-ge": dims.prove_ge}


def canonical(written: str) -> str:
    """The text that all provenly equal dimensions share; `written` itself if it has no value."""
    try:
        return dims.text(dims.parse(written))
    except (ValueError, ZeroDivisionError):
        return written


def holds(guard: str, first: str, second: str) -> bool:
    """Whether a guard of two dimensions, given as texts, is proven; or the first is a number."""
    if guard == IS_NUMBER:
        return first.isdecimal()
    try:
        return _QUESTIONS[guard](dims.parse(first), dims.parse(second))
    except (ValueError, ZeroDivisionError):
        return False
