"""Whether rules are sound: each is tried on random instances of what it matches."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from random import Random

from relax_egraph.egraph.loader import RuleInfo
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


_NEAR = 2
"""Rules that are further from one that equates values are tried in cases, if there are some."""


def check_rules(
    book: RuleBook, only: Iterable[str] | None = None, cases: Sequence[Case] = ()
) -> tuple[Verdict, ...]:
    """A verdict on every rule of `book` but those of facts, in order; `only` names some.

    A rule is tried alone, or with those that deduce what it reads.  Rules of which there are too
    few instances are tried with their families, too, on programs like those of `cases`.  The same
    rules have the same verdicts in every run.
    """
    names = None if only is None else set(only)
    wanted = {r.name: r for r in book.rewrites if names is None or r.name in names}
    chains = {n: _chains(book, rule) for n, rule in wanted.items()}
    near = [n for n in wanted if all(0 < len(c) <= _NEAR for c in chains[n])]
    verdicts = {n: silent(rule, _UNREAD) for n, rule in wanted.items()}
    groups = _Groups(book, chains)
    verdicts |= groups.verdicts(near)
    lacking = {n: v for n, v in verdicts.items() if _lacks(v)}
    verdicts |= _in_cases(book, cases, lacking)
    far = [n for n in wanted if n not in near and all(chains[n]) and _lacks(verdicts[n])]
    for name, verdict in groups.verdicts(far).items():
        verdicts[name] = verdict.together(verdicts[name])
    return tuple(verdicts.values())


_UNREAD = "no rule that equates values reads what it deduces"


def _lacks(verdict: Verdict) -> bool:
    return verdict.fired < INSTANCES and verdict.counterexample is None


def _chains(book: RuleBook, rule: RuleInfo) -> list[tuple[Pattern, ...]]:
    """For each direction of `rule` a chain from one that equates values."""
    return [chain_to(pattern, makers_of(book)) for pattern in patterns_of(rule)]


class _Groups:
    """Rules by the one that equates values with which they are tried."""

    def __init__(self, book: RuleBook, chains: Mapping[str, list[tuple[Pattern, ...]]]) -> None:
        self._book, self._chains = book, chains
        self._groups: dict[str, Group] = {}

    def verdicts(self, names: Sequence[str]) -> dict[str, Verdict]:
        """The verdicts on rules; of the directions of one the worse."""
        asked: dict[str, list[str]] = defaultdict(list)
        for chain in (c for n in names for c in self._chains[n]):
            head, name = chain[0], chain[-1].name
            group = self._groups.setdefault(head.name, Group(self._book, head, Random(head.name)))
            group.chains[name] = chain
            asked[head.name].append(name)
        found: dict[str, Verdict] = {}
        for head, patterns in asked.items():
            for verdict in self._groups[head].verdicts(patterns):
                found[verdict.rule] = max(found.get(verdict.rule, verdict), verdict, key=_severity)
        return found


def _in_cases(
    book: RuleBook, cases: Sequence[Case], few: Mapping[str, Verdict]
) -> dict[str, Verdict]:
    """The verdicts on `few` rules, with what programs like those of `cases` show of them."""
    found = dict(few)
    for number, case in enumerate(cases):
        for time in range(_PASSES):
            lacking = [n for n in sorted(case.fires) if n in found and found[n].fired < INSTANCES]
            random = Random(f"{number} {time}")
            tried = InCase.of(book, case, lacking, random) if lacking else None
            if tried is None:
                break
            for name in lacking:
                found[name] = tried.added_to(found[name])
    return found


def _severity(verdict: Verdict) -> tuple[bool, int, int]:
    return not verdict.sound, ORDER.index(verdict.needs), -verdict.fired
