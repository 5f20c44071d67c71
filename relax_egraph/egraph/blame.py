"""Which rule is to blame for a conflict.

On an e-graph in which equal values have equal shapes and dtypes, only a rule that does not
preserve them can make a conflict.  So the run is repeated with each rule in a ruleset of its own,
and the first after which a conflict shows is the one.
"""

from collections.abc import Iterator

from egglog.bindings import EGraph

from relax_egraph.egraph.bulk import load_view
from relax_egraph.egraph.conflict import Conflict, find_conflict
from relax_egraph.egraph.loader import RuleInfo, commands_of
from relax_egraph.egraph.rulebook import OWN_PHASE, RuleBook
from relax_egraph.egraph.session import run, run_text
from relax_egraph.egraph.view import View

DEDUCE = """(run-schedule (saturate (seq (run facts) (run dim))))
(run-schedule (run conflict))"""
"""Deduces all facts, and the conflicts among them."""

_ROUNDS = 20


def find_blame(view: View, book: RuleBook) -> tuple[RuleInfo, Conflict] | None:
    """The first rule of `book` that makes a conflict on `view`, applied one at a time.

    ``None`` if no rule does within a bounded number of rounds.
    """
    alone = {rule.name: f"alone-{k}" for k, rule in enumerate(book.rewrites)}
    egraph = EGraph()
    run(egraph, commands_of(tuple(_isolated(book, alone)), egraph))
    load_view(egraph, view)
    run_text(egraph, DEDUCE)
    first = [rule for rule in book.rewrites if rule.ruleset not in OWN_PHASE]
    for rules, after in ((first, "lower"), (book.rewrites, "lower")):
        for _ in range(_ROUNDS):
            changed = False
            for rule in rules:
                outputs = run_text(egraph, f"(run-schedule (run {alone[rule.name]}))\n{DEDUCE}")
                changed |= outputs[0].report.updated
                if changed and (conflict := find_conflict(egraph)):
                    return rule, conflict
            if not changed:
                break
        run_text(egraph, f"(run-schedule (run {after}))")
    return None


def _isolated(book: RuleBook, alone: dict[str, str]) -> Iterator[str]:
    for entry in book.entries:
        if isinstance(entry, RuleInfo) and entry.name in alone:
            yield f"(ruleset {alone[entry.name]})"
            yield entry.text(alone[entry.name])
        else:
            yield entry if isinstance(entry, str) else entry.text(entry.ruleset)
