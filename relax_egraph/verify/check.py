"""Whether rules are sound: each is tried on random instances of what it matches."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from random import Random

from relax_egraph.egraph.rulebook import RuleBook
from relax_egraph.verify.cases import Case
from relax_egraph.verify.group import INSTANCES as INSTANCES
from relax_egraph.verify.group import Group
from relax_egraph.verify.in_cases import InCase
from relax_egraph.verify.query import Pattern, patterns_of
from relax_egraph.verify.tolerance import ORDER
from relax_egraph.verify.unfold import chain_to, makers_of
from relax_egraph.verify.verdict import Verdict, silent

_PASSES = 3
"""How often programs like a case's are drawn for rules that match in it."""


def check_rules(
    book: RuleBook, only: Iterable[str] | None = None, cases: Sequence[Case] = ()
) -> tuple[Verdict, ...]:
    """A verdict on every rule of `book` but those of facts, in order; `only` names some.

    A rule is tried alone, or with those that deduce what it reads.  Rules of which there are too
    few instances are tried with their families, too, on programs like those of `cases`.  The same
    rules have the same verdicts in every run.
    """
    names = None if only is None else set(only)
    makers = makers_of(book)
    wanted = [r for r in book.rewrites if names is None or r.name in names]
    groups: dict[str, dict[str, tuple[Pattern, ...]]] = defaultdict(dict)
    found: dict[str, list[Verdict]] = defaultdict(list)
    for rule in wanted:
        for pattern in patterns_of(rule):
            chain = chain_to(pattern, makers)
            if chain:
                groups[chain[0].name][pattern.name] = chain
            else:
                reason = "no rule that equates values reads what it deduces"
                found[rule.name].append(silent(rule, reason))
    for chains in groups.values():
        for verdict in Group(book, chains).verdicts():
            found[verdict.rule].append(verdict)
    verdicts = {r.name: max(found[r.name], key=_severity) for r in wanted}
    few = {n: v for n, v in verdicts.items() if v.fired < INSTANCES and v.counterexample is None}
    verdicts |= _in_cases(book, cases, few)
    return tuple(verdicts[r.name] for r in wanted)


def _in_cases(
    book: RuleBook, cases: Sequence[Case], few: Mapping[str, Verdict]
) -> dict[str, Verdict]:
    """The verdicts on `few` rules, with what programs like those of `cases` show of them."""
    found = dict(few)
    for number, case in enumerate(cases):
        for time in range(_PASSES):
            lacking = [n for n in sorted(case.fires) if n in found and found[n].fired < INSTANCES]
            tried = InCase.of(book, case, Random(f"{number} {time}")) if lacking else None
            if tried is None:
                break
            for name in lacking:
                found[name] = tried.added_to(found[name])
    return found


def _severity(verdict: Verdict) -> tuple[bool, int, int]:
    return not verdict.sound, ORDER.index(verdict.needs), -verdict.fired
