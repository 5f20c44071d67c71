"""What is known of every value, brought up to date after each iteration."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from egglog.bindings import EGraph

from relax_egraph.egraph.commands import Command, run, run_text
from relax_egraph.egraph.forks import new_egraph
from relax_egraph.egraph.readback.tables import Tables
from relax_egraph.egraph.saturation.answers import asked, values_asked
from relax_egraph.egraph.saturation.infer import claims, grown
from relax_egraph.egraph.saturation.measure import sizes_of

DEDUCE = """(run-schedule (saturate (seq (run facts) (run dim))))
(run-schedule (run demands) (run conflict))
(print-size)"""
"""Deduces all that rules deduce, what they ask of functions, and the conflicts.

Its last output says how large the e-graph is.
"""

_DEMAND = """(run-schedule (run demands))
(print-size)"""
"""Asks what depends on values that are no dimensions: no fact does."""

_FEW = 8
"""So many actions are done one by one: to declare a rule costs as much."""

_AT_ONCE = 100
"""Actions in one rule: parsing takes memory quadratic in the length of a text."""


def deduced(
    egraph: EGraph, outputs: list[Any], before: Mapping[str, int] | None = None
) -> Mapping[str, int]:
    """The sizes of tables when everything is deduced; `outputs` are those of `DEDUCE`.

    What no rule deduces is asked of operators' struct-info rules, if since sizes `before` values
    have been made by such operators; functions that rules call are computed.  Raises
    `SaturationError` if an operator refuses its operands, or a function fails.
    """
    sizes, known = sizes_of(outputs), before or {}
    while again := told(egraph, sizes, known, infers=before is not None):
        known, sizes = sizes, sizes_of(run(egraph, _parsed(again)))
    return sizes


@cache
def _parsed(program: str) -> list[Command]:
    return new_egraph().parse_program(program)


def told(
    egraph: EGraph, sizes: Mapping[str, int], before: Mapping[str, int], infers: bool = True
) -> str:
    """Tell the e-graph what functions and, if it `infers`, operators say of what is new.

    New is what was not there at the sizes `before`.  Returns what is to be run then; nothing if
    there was nothing to tell.
    """
    functions = asked(sizes, before)
    names = grown(sizes, before) if infers else ()
    if not functions and not names:
        return ""
    tables = Tables(egraph)
    actions = (*values_asked(functions, tables), *claims(names, tables))
    if len(actions) > _FEW:
        _load(egraph, actions)
    else:
        for action in actions:
            run_text(egraph, action)
    of_dims = names or any(function.result in ("Dim", "Shape") for function in functions)
    return (DEDUCE if of_dims else _DEMAND) if actions else ""


def _load(egraph: EGraph, actions: Sequence[str]) -> None:
    """Do many `actions` at once, by rules of nothing."""
    for start in range(0, len(actions), _AT_ONCE):
        text = " ".join(actions[start : start + _AT_ONCE])
        run_text(egraph, f"(rule () ({text}) :ruleset load) (run-schedule (run load))")
