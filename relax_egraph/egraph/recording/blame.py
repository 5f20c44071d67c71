"""Blame: the search for the unsound rule after a run with a conflict or an error.

On an e-graph in which equal values have equal shapes and dtypes, only a rule that does not
preserve them can lead to a conflict or to an ill-typed node.  So the run is repeated rule by rule;
the first rule after which there is a conflict, or at which egglog fails, is to blame.
"""

from collections.abc import Mapping, Sequence

from relax_egraph.egraph.bindings import EGraph
from relax_egraph.egraph.commands import run_text
from relax_egraph.egraph.encoding.bulk import load_view
from relax_egraph.egraph.forks import new_egraph
from relax_egraph.egraph.readback.tables import Tables
from relax_egraph.egraph.rulebook.book import OWN_PHASE, RuleBook
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.egraph.saturation.conflict import find_conflict
from relax_egraph.egraph.saturation.deduction import DEDUCE, bounded, deduced
from relax_egraph.egraph.saturation.infer import ill_typed
from relax_egraph.egraph.saturation.measure import nodes_of
from relax_egraph.egraph.saturation.schedule import OVERSTEP, Budget
from relax_egraph.egraph.view import View
from relax_egraph.errors import SaturationError

_ROUNDS = 20


def blamed(problem: str, view: View, book: RuleBook, budget: Budget) -> SaturationError:
    """The error that names the rule of `book` to blame on `view`; `problem` if there is none."""
    return SaturationError(_find_blame(view, book, OVERSTEP * budget.nodes) or problem)


def _find_blame(view: View, book: RuleBook, nodes: int) -> str | None:
    """A sentence about the first rule of `book` that is unsound or fails on `view`.

    Rules are applied one by one.  ``None`` if no rule is wrong within a bounded number of rounds
    and of `nodes`.
    """
    egraph = new_egraph()
    for text in book.program.texts:
        run_text(egraph, text)
    load_view(egraph, view, book.absent)
    sizes = deduced(egraph, run_text(egraph, DEDUCE))
    bounded(egraph)
    together = [rule for rule in book.rewrites if rule.ruleset not in OWN_PHASE]
    sentence = _first_wrong(egraph, together, book, nodes, sizes)
    if sentence is None:
        run_text(egraph, "(run-schedule (run lower))")
        sizes = deduced(egraph, run_text(egraph, DEDUCE))
        sentence = _first_wrong(egraph, book.rewrites, book, nodes, sizes)
    return sentence


def _first_wrong(
    egraph: EGraph,
    rules: Sequence[Rule],
    book: RuleBook,
    nodes: int,
    sizes: Mapping[str, int],
) -> str | None:
    for _ in range(_ROUNDS):
        changed = False
        for rule in rules:
            try:
                outputs = run_text(egraph, f"(run-schedule (run {book.own[rule.name]}))\n{DEDUCE}")
                sizes = deduced(egraph, outputs, before=sizes)
                bounded(egraph)
            except SaturationError as problem:
                return f"rule {rule.name} ({rule.span}) fails: {problem}"
            updated = outputs[0].report.updated
            wrong = find_conflict(egraph, sizes) or (updated and ill_typed(Tables(egraph)))
            if wrong:
                return f"rule {rule.name} ({rule.span}) is unsound: it {wrong}"
            changed |= updated
            if nodes_of(sizes) > nodes:
                return None
        if not changed:
            return None
    return None
