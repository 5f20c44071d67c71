"""Deduction of facts after each iteration: rules, engine functions and struct-info rules."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from relax_egraph.egraph.bindings import EGraph
from relax_egraph.egraph.commands import Command, run, run_text
from relax_egraph.egraph.forks import new_egraph
from relax_egraph.egraph.readback.tables import Tables
from relax_egraph.egraph.saturation.answers import asked, values_asked
from relax_egraph.egraph.saturation.infer import claims, grown
from relax_egraph.egraph.saturation.measure import sizes_of

DEDUCE = """(run-schedule (saturate (seq (run facts) (run dim))))
(run-schedule (run demands) (run conflict))
(print-size)"""
"""Runs the rules for facts, dimensions, demands and conflicts.

Its last output has the sizes of all tables.
"""

_DEMAND = """(run-schedule (run demands))
(print-size)"""
"""Runs the rules for demands alone: enough after values that no fact depends on."""

_FEW = 8
"""Up to this number, actions run one by one: the declaration of a rule costs as much."""

_AT_ONCE = 100
"""The most actions in one rule: parsing takes memory quadratic in the length of a text."""


def deduced(
    egraph: EGraph, outputs: list[Any], before: Mapping[str, int] | None = None
) -> Mapping[str, int]:
    """Deduce all facts; returns the sizes of tables.  `outputs` are the outputs of `DEDUCE`.

    Evaluates the functions that rules call, then the struct-info rules of operators for which no
    rule deduces shape and dtype.  These are evaluated for nodes that are new since the sizes
    `before`, and again after each answer of a function, as an operand may have a shape now.
    Raises `SaturationError` if an operator refuses its operands, or a function fails.
    """
    sizes, answered, inferred = sizes_of(outputs), before or {}, before
    while True:
        again = answer(egraph, sizes, answered)
        answered = sizes
        if again:
            inferred = before
        elif inferred is not None:
            again = infer(egraph, sizes, inferred)
            inferred = sizes
        if not again:
            return sizes
        sizes = sizes_of(run(egraph, _parsed(again)))


@cache
def _parsed(program: str) -> list[Command]:
    return new_egraph().parse_program(program)


def answer(egraph: EGraph, sizes: Mapping[str, int], before: Mapping[str, int]) -> str:
    """Compute the functions that are called with arguments new since the sizes `before`.

    Returns the program to run after the answers; empty if there are none.
    """
    functions = asked(sizes, before)
    if not functions or not _done(egraph, values_asked(functions, Tables(egraph))):
        return ""
    return DEDUCE if any(f.result in ("Dim", "Shape") for f in functions) else _DEMAND


def infer(egraph: EGraph, sizes: Mapping[str, int], before: Mapping[str, int]) -> str:
    """Claim the struct info of values of operators that are new since the sizes `before`.

    Returns the program to run after the claims; empty if there are none.
    """
    names = grown(sizes, before)
    return DEDUCE if names and _done(egraph, claims(names, Tables(egraph))) else ""


def _done(egraph: EGraph, actions: Iterable[str]) -> int:
    """Run `actions`; returns their number."""
    every = tuple(actions)
    if len(every) > _FEW:
        _load(egraph, every)
    else:
        for action in every:
            run_text(egraph, action)
    return len(every)


def _load(egraph: EGraph, actions: Sequence[str]) -> None:
    """Run many `actions` at once, as rules without premises."""
    for start in range(0, len(actions), _AT_ONCE):
        text = " ".join(actions[start : start + _AT_ONCE])
        run_text(egraph, f"(rule () ({text}) :ruleset load) (run-schedule (run load))")
