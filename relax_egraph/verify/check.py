"""The check of rules: each rule runs on random instances of its pattern."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from relax_egraph.base.interruption import keeping
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.egraph.rulebook.scope import near
from relax_egraph.verify import INSTANCES
from relax_egraph.verify.cases import Case
from relax_egraph.verify.instances.chains import chain_to, chains_to
from relax_egraph.verify.library_calls import functions_of, turned, unchecked
from relax_egraph.verify.verdict import Verdict, silent
from relax_egraph.verify.work import Stage, Unit, Work
from relax_egraph.verify.workers import Do, workers

Progress: TypeAlias = Callable[[Verdict], object]
"""A callback for each verdict, as soon as it is final."""

_NEAR = 2
"""A rule with a longer chain to a rule that equates values is tried in cases first."""

_UNREAD = "no rule that equates values reads what it deduces"


def check_rules(
    book: RuleBook,
    only: Iterable[str] | None = None,
    cases: Sequence[Case] = (),
    *,
    trials: int = INSTANCES,
    seed: int = 0,
    processes: int = 1,
    progress: Progress | None = None,
) -> tuple[Verdict, ...]:
    """The verdicts on the rules of `book`, or on those in `only`, in order.

    Rules for facts that an instance determines by itself, shapes and dtypes, are not checked.

    A rule runs alone, or with rules that deduce its premises, until it has matched `trials` times.
    Rules with too few instances also run with their families, on programs like those of `cases`.
    The same rules and `seed` have the same verdicts in every run, in one process and in many.
    `progress` is called with each final verdict.

    With several `processes`, a rule that crashes its process or does not end costs only its own
    verdict, which says so.  An interruption raises `Interrupted`, whose `done` are the verdicts
    that are final.  A rule with a call of a function that is not registered is not checked;
    functions that cannot be sent to another process are called in this one.  Raises ``ValueError``
    for a name that no rule has, and if there is no rule to check.
    """
    book = turned(book)
    wanted = _wanted(book, only)
    why_not = {n: why for n, rule in wanted.items() if (why := unchecked(rule))}
    functions = functions_of(wanted.values())
    processes = 1 if functions is None else processes
    chains = {n: [] if n in why_not else _chains(book, rule) for n, rule in wanted.items()}
    close = [n for n in wanted if n not in why_not and all(0 < len(c) <= _NEAR for c in chains[n])]
    distant = [n for n in wanted if n not in (*close, *why_not) and all(chains[n])]
    work = Work(book, tuple(cases), trials, seed, functions or {})
    log = _Log({n: silent(rule, _UNREAD) for n, rule in wanted.items()}, progress)
    for name, why in why_not.items():
        log.verdicts[name] = replace(silent(wanted[name], why), checked=False)
    with keeping(log.so_far), workers(work, processes) as do:
        for verdict in _combined(work, do, _groups("near", close, chains)):
            log.verdicts[verdict.rule] = verdict
            if not work.lacks(verdict):
                log.report(verdict.rule)
        lacking = {n: wanted[n] for n, v in log.verdicts.items() if v.checked and work.lacks(v)}
        for verdict in _combined(work, do, _in_cases(work, lacking, log.verdicts)):
            log.verdicts[verdict.rule] = verdict
        distant = [n for n in distant if work.lacks(log.verdicts[n])]
        log.report(*(n for n in wanted if n not in distant))
        doubted = frozenset(n for n, v in log.verdicts.items() if v.needs == "unsound")
        for verdict in _combined(work, do, _groups("far", distant, chains, doubted)):
            log.verdicts[verdict.rule] = verdict.together(log.verdicts[verdict.rule])
            log.report(verdict.rule)
    return tuple(log.verdicts.values())


def _wanted(book: RuleBook, only: Iterable[str] | None) -> Mapping[str, Rule]:
    rules = {r.name: r for r in book.checked}
    names = set(rules if only is None else only)
    if not names:
        raise ValueError("no rule was checked: there is none to check")
    for name in sorted(names - set(rules)):
        note = near(name, rules)
        raise ValueError(f"no rule is named {name!r}" + f"; {note}" * bool(note))
    return {n: rule for n, rule in rules.items() if n in names}


@dataclass(slots=True)
class _Log:
    """The verdicts known so far, and the rules whose verdicts are final and have been reported."""

    verdicts: dict[str, Verdict]
    progress: Progress | None
    reported: set[str] = field(default_factory=set[str])

    def report(self, *names: str) -> None:
        """Pass the verdicts on the rules `names` to the callback, each once."""
        for name in names:
            if name not in self.reported:
                self.reported.add(name)
                if self.progress is not None:
                    self.progress(self.verdicts[name])

    def so_far(self) -> tuple[str, tuple[Verdict, ...]]:
        """How many rules were checked, and the verdicts on them."""
        done = tuple(v for name, v in self.verdicts.items() if name in self.reported)
        return f"{len(done)} of {len(self.verdicts)} rules were checked", done


_Chain: TypeAlias = tuple[str, ...]


def _chains(book: RuleBook, rule: Rule) -> list[_Chain]:
    """Chains to each direction of `rule` from a rule that equates values, by name.

    A user's rule that deduces a fact has a chain for each rule that reads the fact: one reader may
    require more than another.  For a rule of the book one chain is enough.
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
    """Units of chains that begin with the same rule."""
    groups: dict[str, list[_Chain]] = defaultdict(list)
    for chain in (c for n in names for c in chains[n]):
        groups[chain[0]].append(chain)
    return [Unit(stage, head, tuple(group), doubted=doubted) for head, group in groups.items()]


def _in_cases(
    work: Work, lacking: Mapping[str, Rule], verdicts: Mapping[str, Verdict]
) -> list[Unit]:
    """Units of rules that lack instances and match in a case, by family."""
    firing = {name for case in work.cases for name in case.fires}
    families: dict[str, list[Verdict]] = defaultdict(list)
    for name, rule in lacking.items():
        if name in firing:
            families[rule.ruleset].append(verdicts[name])
    return [Unit("in cases", family, known=tuple(known)) for family, known in families.items()]


def _combined(work: Work, do: Do, units: Sequence[Unit]) -> Iterator[Verdict]:
    """The verdicts of `units` in the order of completion, one for each rule.

    Both directions of a birewrite have to fire.  A deduction is tried with several readers; it is
    enough that one of them fires.
    """
    rules = {r.name: r for r in work.book.rules}
    waiting = Counter(name for unit in units for name in work.rules_of(unit))
    partial: dict[str, Verdict] = {}
    for verdict in do(units):
        name = verdict.rule
        if (other := partial.get(name)) is not None:
            combine = other.beside if rules[name].kind == "birewrite" else other.together
            verdict = combine(verdict)
        partial[name] = verdict
        waiting[name] -= 1
        if not waiting[name]:
            yield partial.pop(name)
