"""Which rules a run has: the families of the book and the user's files."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from egglog.bindings import EGraph

from relax_egraph import rules
from relax_egraph.egraph.commands import Command, prepared, run
from relax_egraph.egraph.forms import Source
from relax_egraph.egraph.generate import generated_forms, generated_names
from relax_egraph.egraph.loader import Entry, RuleInfo, commands_of, load
from relax_egraph.egraph.scope import Scope, near

OWN_PHASE = ("lower", "fusion")
"""Rulesets with a phase of their own; all others of the book and of users run in one phase."""

TOGETHER = "rewrite-together"
"""The ruleset that combines them."""


@dataclass(frozen=True, slots=True)
class RuleBook:
    """Rule texts by name; equal books are read once per process.

    Making one reads every text: `RuleError` says what is wrong with the first that is.
    """

    families: tuple[str, ...]
    user: tuple[Source, ...] = ()
    without: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        known = [*rules.FAMILIES, *(rule.name for rule in _read(self.families, self.user).rules)]
        for name in self.without:
            if name not in known:
                note = near(name, known)
                raise ValueError(f"no family or rule is named {name!r}" + f"; {note}" * bool(note))

    @staticmethod
    def default(
        user: Iterable[str | Path] = (),
        without: Iterable[str] = (),
        families: Iterable[str] = rules.FAMILIES,
    ) -> "RuleBook":
        """The families of the book (all, or those given) and the user's rules.

        A `user` entry is a path, or a text, which has parentheses.  `without` names families of
        the book or single rules that are left out.
        """
        left_out = frozenset(without)
        sources = tuple(_source(entry, k) for k, entry in enumerate(user))
        return RuleBook(
            tuple(f for f in families if f not in left_out), sources, left_out - set(rules.FAMILIES)
        )

    @property
    def rules(self) -> tuple[RuleInfo, ...]:
        """Every rule of the book's and the user's files, in order; without the generated ones."""
        return tuple(r for r in _read(self.families, self.user).rules if r.name not in self.without)

    @property
    def rewrites(self) -> tuple[RuleInfo, ...]:
        """The rules that equate values: all but those that deduce facts."""
        return tuple(r for r in self.rules if r.ruleset not in rules.FACTS)

    @property
    def rulesets(self) -> tuple[str, ...]:
        """The rulesets that run together, in order of first use."""
        named = dict.fromkeys(r.ruleset for r in self.rewrites)
        return tuple(name for name in named if name not in OWN_PHASE)

    @property
    def commands(self) -> tuple[Command, ...]:
        """What makes an empty e-graph one with this vocabulary and these rules."""
        return _commands(self)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Generated forms, declarations and rules, in order."""
        kept = (
            entry
            for entry in _read(self.families, self.user).entries
            if isinstance(entry, str) or entry.name not in self.without
        )
        together = f"(unstable-combined-ruleset {TOGETHER} {' '.join(self.rulesets)})"
        return (*generated_forms(), *kept, together)


@dataclass(frozen=True, slots=True)
class _Read:
    entries: tuple[Entry, ...]
    scope: Scope

    @property
    def rules(self) -> list[RuleInfo]:
        """The rules among them."""
        return [entry for entry in self.entries if isinstance(entry, RuleInfo)]


@lru_cache(64)
def _read(families: tuple[str, ...], user: tuple[Source, ...]) -> _Read:
    if user:
        known = _read(families, ())
        scope = known.scope.copy()
        with prepared(_commands(RuleBook(families))) as trial:
            added = [entry for source in user for entry in load(source, scope, trial)]
        return _Read((*known.entries, *added), scope)
    scope, trial = Scope(rules=dict.fromkeys(generated_names()), trusted=True), EGraph()
    run(trial, _generated_commands())
    entries: list[Entry] = []
    for family in (*rules.FACTS, *families):
        entries += load(Source(f"rules/{family}.egg", rules.load(family)), scope, trial)
    scope.trusted = False
    return _Read(tuple(entries), scope)


@lru_cache(1)
def _generated_commands() -> tuple[Command, ...]:
    return commands_of(generated_forms(), EGraph())


@lru_cache(64)
def _commands(book: RuleBook) -> tuple[Command, ...]:
    return commands_of(book.entries, EGraph())


def _source(entry: str | Path, number: int) -> Source:
    if isinstance(entry, Path) or "(" not in entry:
        path = Path(entry)
        return Source(str(entry), path.read_text("utf-8"))
    return Source("<rules>" if number == 0 else f"<rules-{number + 1}>", entry)
