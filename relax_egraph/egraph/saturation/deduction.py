"""Deduction of facts after each iteration: rules, engine functions and struct-info rules."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from relax_egraph.egraph.bindings import EGraph
from relax_egraph.egraph.commands import Command, run, run_text
from relax_egraph.egraph.forks import new_egraph
from relax_egraph.egraph.functions.function import Function
from relax_egraph.egraph.readback.tables import Tables
from relax_egraph.egraph.saturation.answers import asked, values_asked
from relax_egraph.egraph.saturation.infer import claims, grown
from relax_egraph.egraph.saturation.measure import sizes_of

DEDUCE = """(run-schedule (saturate (seq (run facts) (saturate (run dim)))))
(run-schedule (run demands) (run conflict))
(print-size)"""
"""Runs the rules for facts, dimensions, demands and conflicts.

Its last output has the sizes of all tables.
"""

_BOUND = "(run-schedule (saturate (seq (run ranges) (run magnitudes) (run ordinary))))"
"""Runs the rules for bounds and magnitudes."""

_DEMAND = """(run-schedule (run demands))
(print-size)"""
"""Runs the rules for demands alone: enough after values that no fact depends on."""


def deduced(
    egraph: EGraph, outputs: list[Any], before: Mapping[str, int] | None = None
) -> Mapping[str, int]:
    """Deduce all facts; returns the sizes of tables.  `outputs` are the outputs of `DEDUCE`.

    Evaluates the functions that rules call, then the struct-info rules of operators for which no
    rule deduces shape and dtype.  These are evaluated for nodes that are new since the sizes
    `before`, and again after each value of a function from which shapes follow, as an operand may
    have a shape now.  Raises `SaturationError` if an operator refuses its operands, or a function
    fails.
    """
    sizes, answered, inferred = sizes_of(outputs), before or {}, before or {}
    while True:
        functions = asked(sizes, answered)
        shapes_follow = any(f.result in ("Dim", "Shape") for f in functions)
        names = () if shapes_follow or before is None else grown(sizes, inferred)
        if not functions and not names:
            return sizes
        answered, inferred = sizes, before or {} if shapes_follow else sizes
        if add_values(egraph, functions, names):
            program = DEDUCE if shapes_follow or names else _DEMAND
            sizes = sizes_of(run(egraph, _parsed(program)))


def bounded(egraph: EGraph) -> Any:
    """Deduce all bounds and magnitudes from facts; returns egglog's report.

    No other fact depends on them, and what rules make seldom has better ones: it is enough to
    deduce them at the start, and where no rule changes anything.
    """
    return run(egraph, _parsed(_BOUND))[0].report


@cache
def _parsed(program: str) -> list[Command]:
    return new_egraph().parse_program(program)


def add_values(egraph: EGraph, functions: Sequence[Function], names: Sequence[str]) -> int:
    """Add the values of `functions` that rules demand, and claims on results of operators `names`.

    Returns their number.
    """
    if not functions and not names:
        return 0
    tables = Tables(egraph)
    return _done(egraph, (*values_asked(functions, tables), *claims(names, tables)))


def _done(egraph: EGraph, actions: Sequence[str]) -> int:
    """Run `actions`, one by one, as a rule of many costs as much; returns their number."""
    for action in actions:
        run_text(egraph, action)
    return len(actions)
