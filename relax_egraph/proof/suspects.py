"""Suspects: the rules that may be wrong if a step fails, its own and those for its facts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from relax_egraph.proof.difference import all_steps
from relax_egraph.proof.trace import Step, Trace
from relax_egraph.verify.check import check_rules
from relax_egraph.verify.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Suspects:
    """The `rules` of a step, deductions first, and the verdicts on the `refuted` ones."""

    rules: tuple[str, ...]
    refuted: tuple[Verdict, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The rules that are refuted; all rules if none is."""
        return tuple(v.rule for v in self.refuted) or self.rules

    @property
    def text(self) -> str:
        """One line on the suspects; empty if there is one, and it is not refuted."""
        if not self.refuted:
            return f"one of {', '.join(self.rules)} is wrong" if len(self.rules) > 1 else ""
        wrong = (f"{v.rule} ({v.span}) is {v.kind}" for v in self.refuted)
        return f"by `rules check` {', '.join(wrong)}"


def suspects(trace: Trace, step: Step) -> Suspects:
    """The rules that may be wrong if `step` of `trace` does not hold.

    Only the rules that deduce and read a relation define its meaning; so if a step rests on several
    rules, each is checked on random instances, as by ``rules check``.
    """
    deducing = [one.rule for inner in all_steps([step]) for one in inner.deduced]
    names = [trace.rules[n].name for n in (*deducing, step.rule) if n in trace.rules]
    rules = tuple(dict.fromkeys(names))
    if len(rules) < 2 or trace.book is None:
        return Suspects(rules or (step.rule,))
    return Suspects(rules, _refuted(trace, rules))


def _refuted(trace: Trace, rules: Sequence[str]) -> tuple[Verdict, ...]:
    """The verdicts on the unsound rules among `rules`, in their order."""
    assert trace.book is not None
    book = replace(trace.book, absent=frozenset())
    known = {rule.name for rule in book.rewrites}
    verdicts = {v.rule: v for v in check_rules(book, [n for n in rules if n in known])}
    return tuple(verdicts[n] for n in rules if n in verdicts and verdicts[n].needs == "unsound")
