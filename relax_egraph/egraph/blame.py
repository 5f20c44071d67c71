"""Which rule is to blame for a run that went wrong.

On an e-graph in which equal values have equal shapes and dtypes, only a rule that does not
preserve them can make a conflict.  So the run is repeated with each rule in a ruleset of its own,
and the first after which a conflict shows, or at which egglog fails, is the one.
"""

from collections.abc import Iterator, Sequence

from egglog.bindings import EGraph

from relax_egraph.egraph.bulk import load_view
from relax_egraph.egraph.commands import run, run_text
from relax_egraph.egraph.conflict import find_conflict
from relax_egraph.egraph.loader import RuleInfo, commands_of
from relax_egraph.egraph.measure import nodes_of, sizes_of
from relax_egraph.egraph.rulebook import OWN_PHASE, RuleBook
from relax_egraph.egraph.view import View
from relax_egraph.errors import SaturationError

DEDUCE = """(run-schedule (saturate (seq (run facts) (run dim))))
(run-schedule (run conflict))
(print-size)"""
"""Deduces all facts and the conflicts among them, and says how large the e-graph is."""

_ROUNDS = 20


def find_blame(view: View, book: RuleBook, nodes: int) -> str | None:
    """A sentence about the first rule of `book` that goes wrong on `view`, applied one by one.

    ``None`` if no rule does within a bounded number of rounds and of `nodes`.
    """
    alone = {rule.name: f"alone-{k}" for k, rule in enumerate(book.rewrites)}
    egraph = EGraph()
    run(egraph, commands_of(tuple(_isolated(book, alone)), egraph))
    load_view(egraph, view)
    run_text(egraph, DEDUCE)
    together = [rule for rule in book.rewrites if rule.ruleset not in OWN_PHASE]
    found = _first_wrong(egraph, together, alone, nodes)
    if found is None:
        run_text(egraph, "(run-schedule (run lower))")
        found = _first_wrong(egraph, book.rewrites, alone, nodes)
    return found


def _first_wrong(
    egraph: EGraph, rules: Sequence[RuleInfo], alone: dict[str, str], nodes: int
) -> str | None:
    for _ in range(_ROUNDS):
        changed = False
        for rule in rules:
            try:
                outputs = run_text(egraph, f"(run-schedule (run {alone[rule.name]}))\n{DEDUCE}")
            except SaturationError as problem:
                return f"rule {rule.name} ({rule.span}) fails: {problem}"
            if conflict := find_conflict(egraph, sizes_of(outputs)):
                return f"rule {rule.name} ({rule.span}) is unsound: it {conflict}"
            changed |= outputs[0].report.updated
            if nodes_of(sizes_of(outputs)) > nodes:
                return None
        if not changed:
            return None
    return None


def _isolated(book: RuleBook, alone: dict[str, str]) -> Iterator[str]:
    for entry in book.entries:
        if isinstance(entry, RuleInfo) and entry.name in alone:
            yield f"(ruleset {alone[entry.name]})"
            yield entry.text(alone[entry.name])
        else:
            yield entry if isinstance(entry, str) else entry.text(entry.ruleset)
