"""The check of rules: each rule runs on random instances of its pattern."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import itemgetter
from typing import TypeAlias

from relax_egraph.base.interruption import keeping
from relax_egraph.base.journal import Journal
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.egraph.rulebook.scope import near
from relax_egraph.errors import Interrupted
from relax_egraph.verify import INSTANCES
from relax_egraph.verify.cases import Case
from relax_egraph.verify.instances.chains import chain_to, chains_to
from relax_egraph.verify.journaled import JournaledVerdicts, not_kept
from relax_egraph.verify.library_calls import functions_of, turned, unchecked
from relax_egraph.verify.verdict import Verdict, silent
from relax_egraph.verify.work import Stage, Unit, Work
from relax_egraph.verify.workers import Do, workers
from relax_egraph.workers.executor import ExecutorOf
from relax_egraph.workers.pool import Pool

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
    """The verdicts on the rules of `book`, or on those in `only`, in order, with one `seed`.

    This is `check_seeds` in this process, or in several `processes`.  `Interrupted` has the
    verdicts that are final.
    """
    executor = partial(Pool, processes) if processes > 1 else None
    how = Check(book, only, cases, trials, executor)
    try:
        return check_seeds(how, [seed], progress)[seed]
    except Interrupted as stop:
        raise Interrupted(stop.extent, stop.done[seed]) from None


@dataclass(frozen=True, slots=True)
class Check:
    """What is checked: rules of `book`, or those in `only`; and how.

    A rule runs alone, or with rules that deduce its premises, until it has matched `trials` times.
    Rules with too few instances also run with their families, on programs like those of `cases`.

    With an `executor`, a rule that crashes its process or does not end costs only its own verdict,
    which says so; without one, all is done in this process.  A check that is killed goes on from
    its `journal`.
    """

    book: RuleBook
    only: Iterable[str] | None = None
    cases: Sequence[Case] = ()
    trials: int = INSTANCES
    executor: ExecutorOf | None = None
    journal: Journal | None = None


def check_seeds(
    check: Check, seeds: Iterable[int], progress: Progress | None = None
) -> Mapping[int, tuple[Verdict, ...]]:
    """The verdicts on rules by seed, in the order of the rules.

    Rules for facts that an instance determines by itself, shapes and dtypes, are not checked.
    The same rules and seed have the same verdicts in every run, in one process and in many.
    `progress` is called with each final verdict.

    An interruption raises `Interrupted`, whose `done` are the verdicts that are final, by seed.  A
    rule with a call of a function that is not registered is not checked; functions that cannot be
    sent to another process are called in this one.  Raises ``ValueError`` for a name that no rule
    has, if there is no rule to check, and for a journal of rules with Python functions, of other
    rules or of other seeds.
    """
    seeds = tuple(seeds)
    book = turned(check.book)
    wanted = _wanted(book, check.only)
    why_not = {n: why for n, rule in wanted.items() if (why := unchecked(rule))}
    functions = functions_of(wanted.values())
    executor = None if functions is None else check.executor
    chains = {n: [] if n in why_not else _chains(book, rule) for n, rule in wanted.items()}
    close = [n for n in wanted if n not in why_not and all(0 < len(c) <= _NEAR for c in chains[n])]
    far = [n for n in wanted if n not in (*close, *why_not) and all(chains[n])]
    work = Work(book, tuple(check.cases), check.trials, functions or {})
    _require_kept(check.journal, work, functions, seeds)
    first = {n: silent(rule, _UNREAD) for n, rule in wanted.items()}
    for name, why in why_not.items():
        first[name] = replace(silent(wanted[name], why), checked=False)
    logs = {seed: _Log({**first}, progress) for seed in seeds}
    with keeping(partial(_so_far, logs)), workers(work, executor, check.journal) as do:
        units = [unit for s in logs for unit in _groups("near", close, chains, s)]
        for seed, verdict in _combined(work, do, units):
            logs[seed].verdicts[verdict.rule] = verdict
            if not work.lacks(verdict):
                logs[seed].report(verdict.rule)
        units = [unit for s, log in logs.items() for unit in _in_cases(work, log.lacking(work), s)]
        for seed, verdict in _combined(work, do, units):
            logs[seed].verdicts[verdict.rule] = verdict
        units = []
        for seed, log in logs.items():
            distant = [n for n in far if work.lacks(log.verdicts[n])]
            log.report(*(n for n in wanted if n not in distant))
            units += _groups("far", distant, chains, seed, log.doubted)
        for seed, verdict in _combined(work, do, units):
            log = logs[seed]
            log.verdicts[verdict.rule] = verdict.together(log.verdicts[verdict.rule])
            log.report(verdict.rule)
    return {seed: tuple(log.verdicts.values()) for seed, log in logs.items()}


def _require_kept(
    journal: Journal | None,
    work: Work,
    functions: Mapping[str, bytes] | None,
    seeds: Iterable[int],
) -> None:
    """Raise ``ValueError`` if the journal cannot keep the verdicts of `work`, or is of others."""
    if journal is None:
        return
    what = not_kept(work) or "rules that call Python functions" * (functions is None)
    if what:
        raise ValueError(
            f"a journal keeps no verdicts on {what}, whose code may change; check them without it"
        )
    JournaledVerdicts(journal, work).require_input(seeds)


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

    def lacking(self, work: Work) -> list[Verdict]:
        """The verdicts on rules that need more instances."""
        return [v for v in self.verdicts.values() if v.checked and work.lacks(v)]

    @property
    def doubted(self) -> frozenset[str]:
        """The rules that are unsound."""
        return frozenset(n for n, v in self.verdicts.items() if v.needs == "unsound")

    @property
    def done(self) -> tuple[Verdict, ...]:
        """The verdicts that are final."""
        return tuple(v for name, v in self.verdicts.items() if name in self.reported)


def _so_far(logs: Mapping[int, _Log]) -> tuple[str, Mapping[int, tuple[Verdict, ...]]]:
    """How many rules were checked, and the verdicts on them by seed."""
    done = {seed: log.done for seed, log in logs.items()}
    total = sum(len(log.verdicts) for log in logs.values())
    seeds = f" with {len(logs)} seeds" * (len(logs) > 1)
    return f"{sum(map(len, done.values()))} of {total} rules{seeds} were checked", done


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
    seed: int,
    doubted: frozenset[str] = frozenset(),
) -> list[Unit]:
    """Units of chains that begin with the same rule."""
    groups: dict[str, list[_Chain]] = defaultdict(list)
    for chain in (c for n in names for c in chains[n]):
        groups[chain[0]].append(chain)
    return [
        Unit(stage, head, tuple(group), doubted=doubted, seed=seed)
        for head, group in groups.items()
    ]


def _in_cases(work: Work, lacking: Iterable[Verdict], seed: int) -> list[Unit]:
    """Units of rules that lack instances and match in a case, by family."""
    firing = {name for case in work.cases for name in case.fires}
    families: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in lacking:
        if verdict.rule in firing:
            families[work.rules[verdict.rule].ruleset].append(verdict)
    return [
        Unit("in cases", family, known=tuple(known), seed=seed)
        for family, known in families.items()
    ]


def _combined(work: Work, do: Do, units: Sequence[Unit]) -> Iterator[tuple[int, Verdict]]:
    """The verdicts of `units` with their seeds as soon as they are known, one for each rule.

    Both directions of a birewrite have to fire.  A deduction is tried with several readers; it is
    enough that one of them fires.  The parts of a verdict are combined in the order of `units`.
    """
    places = {id(unit): place for place, unit in enumerate(units)}  # `units` keeps all of them
    waiting = Counter((unit.seed, name) for unit in units for name in work.rules_of(unit))
    parts: dict[tuple[int, str], list[tuple[int, Verdict]]] = defaultdict(list)
    for unit, verdicts in do(units):
        for verdict in verdicts:
            key = unit.seed, verdict.rule
            parts[key].append((places[id(unit)], verdict))
            waiting[key] -= 1
            if not waiting[key]:
                ordered = [part for _, part in sorted(parts.pop(key), key=itemgetter(0))]
                birewrite = work.rules[verdict.rule].kind == "birewrite"
                yield unit.seed, reduce(Verdict.beside if birewrite else Verdict.together, ordered)
