"""Whether rules are sound: each is tried on random instances of what it matches."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.egraph.rulebook.scope import near
from relax_egraph.verify import INSTANCES
from relax_egraph.verify.cases import Case
from relax_egraph.verify.instances.chains import chain_to, chains_to
from relax_egraph.verify.verdict import Verdict, silent
from relax_egraph.verify.work import Stage, Unit, Work
from relax_egraph.verify.workers import Do, workers

Told: TypeAlias = Callable[[Verdict], object]

_NEAR = 2
"""Rules that are further from one that equates values are tried in cases, if there are some."""

_UNREAD = "no rule that equates values reads what it deduces"


def check_rules(
    book: RuleBook,
    only: Iterable[str] | None = None,
    cases: Sequence[Case] = (),
    *,
    trials: int = INSTANCES,
    seed: int = 0,
    processes: int = 1,
    told: Told | None = None,
) -> tuple[Verdict, ...]:
    """A verdict on every rule of `book` but those of facts, in order; `only` names some.

    A rule is tried alone, or with those that deduce what it reads, until it has matched so many
    `trials`.  Rules of which there are too few instances are tried with their families, too, on
    programs like those of `cases`.  The same rules and `seed` have the same verdicts in every run,
    in one process and in many; each is `told` when it is known.

    In more `processes` than one a rule that brings its process down, or that does not end, costs
    its own verdict alone, which says so.  Raises ``ValueError`` for a name of no rule, and where
    no rule is to be checked.
    """
    wanted = _wanted(book, only)
    chains = {n: _chains(book, rule) for n, rule in wanted.items()}
    close = [n for n in wanted if all(0 < len(c) <= _NEAR for c in chains[n])]
    distant = [n for n in wanted if n not in close and all(chains[n])]
    work = Work(book, tuple(cases), trials, seed)
    so_far = _SoFar({n: silent(rule, _UNREAD) for n, rule in wanted.items()}, told or _nobody)
    with workers(work, processes) as do:
        for found in _combined(work, do, _groups("near", close, chains)):
            so_far.verdicts[found.rule] = found
            if not work.lacks(found):
                so_far.tell(found.rule)
        lacking = {n: wanted[n] for n, v in so_far.verdicts.items() if work.lacks(v)}
        for found in _combined(work, do, _in_cases(work, lacking, so_far.verdicts)):
            so_far.verdicts[found.rule] = found
        distant = [n for n in distant if work.lacks(so_far.verdicts[n])]
        so_far.tell(*(n for n in wanted if n not in distant))
        doubted = frozenset(n for n, v in so_far.verdicts.items() if v.needs == "unsound")
        for found in _combined(work, do, _groups("far", distant, chains, doubted)):
            so_far.verdicts[found.rule] = found.together(so_far.verdicts[found.rule])
            so_far.tell(found.rule)
    return tuple(so_far.verdicts.values())


def _wanted(book: RuleBook, only: Iterable[str] | None) -> Mapping[str, Rule]:
    rules = {r.name: r for r in book.rewrites}
    names = set(rules if only is None else only)
    if not names:
        raise ValueError("no rule was checked: there is none to check")
    for name in sorted(names - set(rules)):
        note = near(name, rules)
        raise ValueError(f"no rule is named {name!r}" + f"; {note}" * bool(note))
    return {n: rule for n, rule in rules.items() if n in names}


def _nobody(verdict: Verdict) -> None:
    """Tell nobody."""


@dataclass(slots=True)
class _SoFar:
    """The verdicts as far as they are known, and of which rules they have been told."""

    verdicts: dict[str, Verdict]
    told: Told
    known: set[str] = field(default_factory=set[str])

    def tell(self, *names: str) -> None:
        for name in names:
            if name not in self.known:
                self.known.add(name)
                self.told(self.verdicts[name])


_Chain: TypeAlias = tuple[str, ...]


def _chains(book: RuleBook, rule: Rule) -> list[_Chain]:
    """For each direction of `rule` a chain from one that equates values, by name.

    What a rule of a user deduces is tried with each rule that reads it: one may ask more of it than
    another.  Those of the book have been tried in every case of theirs, and one is enough.
    """
    every = rule.name in book.of_user
    chains = (
        chain
        for pattern in rule.directions
        for chain in (chains_to(pattern, book) if every else [chain_to(pattern, book)])
    )
    return [tuple(pattern.name for pattern in chain) for chain in chains]


def _groups(
    stage: Stage,
    names: Iterable[str],
    chains: Mapping[str, list[_Chain]],
    doubted: frozenset[str] = frozenset(),
) -> list[Unit]:
    """Rules by the one that equates values with which they are tried."""
    groups: dict[str, list[_Chain]] = defaultdict(list)
    for chain in (c for n in names for c in chains[n]):
        groups[chain[0]].append(chain)
    return [Unit(stage, head, tuple(some), doubted=doubted) for head, some in groups.items()]


def _in_cases(
    work: Work, lacking: Mapping[str, Rule], verdicts: Mapping[str, Verdict]
) -> list[Unit]:
    """The rules that lack instances and match in a case, by family."""
    firing = {name for case in work.cases for name in case.fires}
    families: dict[str, list[Verdict]] = defaultdict(list)
    for name, rule in lacking.items():
        if name in firing:
            families[rule.ruleset].append(verdicts[name])
    return [Unit("in cases", family, known=tuple(some)) for family, some in families.items()]


def _combined(work: Work, do: Do, units: Sequence[Unit]) -> Iterator[Verdict]:
    """The verdicts of `units`, as they are ready; all those on one rule in one.

    Both directions of a rule have to fire.  What a rule deduces is tried with several that read it,
    of which one may be enough.
    """
    rules = {r.name: r for r in work.book.rules}
    waiting = Counter(name for unit in units for name in work.rules_of(unit))
    found: dict[str, Verdict] = {}
    for verdict in do(units):
        name = verdict.rule
        if name in found:
            both = found[name].beside if rules[name].kind == "birewrite" else found[name].together
            verdict = both(verdict)
        found[name] = verdict
        waiting[name] -= 1
        if not waiting[name]:
            yield found.pop(name)
