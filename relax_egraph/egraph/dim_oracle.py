"""What the ``dim`` rules ask of sympy: the canonical text of a dimension."""

from functools import lru_cache

from relax_egraph.ir import dims


@lru_cache(1 << 16)
def canonical(written: str) -> str:
    """The text that all provenly equal dimensions share; `written` itself if it has no value.

    Called from within rules, so it must not raise and must depend on nothing but its argument.
    """
    try:
        return dims.text(dims.parse(written))
    except (ValueError, ZeroDivisionError):
        return written
