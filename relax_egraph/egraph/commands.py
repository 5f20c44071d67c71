"""Execution of egglog commands; errors and panics of egglog become `SaturationError`."""

from collections.abc import Iterable
from typing import Any

from relax_egraph.egraph.bindings import EggSmolError, EGraph
from relax_egraph.errors import SaturationError

Command = Any
"""A parsed egglog command; the bindings have no name for the union of their types."""


def run(egraph: EGraph, commands: Iterable[Command]) -> list[Any]:
    """Run parsed commands and return their outputs.

    Raises `SaturationError` for errors and panics of egglog.  An exception of a Python function
    that a rule calls passes through.
    """
    try:
        return egraph.run_program(*commands)
    except EggSmolError as problem:
        raise SaturationError(f"egglog: {problem.context}") from None
    except BaseException as problem:
        if type(problem).__name__ != "PanicException":
            raise
        raise SaturationError(f"egglog panicked: {problem}") from None


def run_text(egraph: EGraph, text: str) -> list[Any]:
    """Parse and run a short `text`: parsing takes memory quadratic in its length."""
    return run(egraph, egraph.parse_program(text))
