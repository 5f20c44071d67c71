"""What is known of every value, brought up to date after each iteration."""

from collections.abc import Mapping
from typing import Any

from egglog.bindings import EGraph

from relax_egraph.egraph.commands import run_text
from relax_egraph.egraph.saturation.infer import grown, infer_made
from relax_egraph.egraph.saturation.measure import sizes_of

DEDUCE = """(run-schedule (saturate (seq (run facts) (run dim))))
(run-schedule (run conflict))
(print-size)"""
"""Deduces all that rules deduce, and the conflicts, and says how large the e-graph is."""


def deduced(
    egraph: EGraph, outputs: list[Any], before: Mapping[str, int] | None = None
) -> Mapping[str, int]:
    """The sizes of tables when everything is deduced; `outputs` are those of `DEDUCE`.

    What no rule deduces is asked of operators' struct-info rules, if since sizes `before` values
    have been made by such operators.  Raises `SaturationError` if one refuses its operands.
    """
    sizes = sizes_of(outputs)
    while before is not None and (names := grown(sizes, before)) and infer_made(egraph, names):
        before, sizes = sizes, sizes_of(run_text(egraph, DEDUCE))
    return sizes
