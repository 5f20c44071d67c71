"""Which rules a run has: the families of the book and the user's files."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial

from egglog.bindings import EGraph

from relax_egraph import rules
from relax_egraph.base.parameters import (
    FLAG,
    NAME,
    NAMES,
    Kind,
    check_fields,
    collection,
    instance,
    takes,
)
from relax_egraph.egraph.commands import Command, run_text
from relax_egraph.egraph.encoding.prepared import Program, prepared
from relax_egraph.egraph.forks import egglog_works, new_egraph
from relax_egraph.egraph.functions.function import called
from relax_egraph.egraph.rulebook.forms import Source
from relax_egraph.egraph.rulebook.generate import generated_forms, generated_names
from relax_egraph.egraph.rulebook.loader import Entry, RuleInfo, commands_of, load
from relax_egraph.egraph.rulebook.relevant import absent, can_matter
from relax_egraph.egraph.rulebook.rulesets import forms_of
from relax_egraph.egraph.rulebook.scope import ENGINE_RULESETS, WRITTEN_BY_RULES, Scope, near
from relax_egraph.errors import SaturationError
from relax_egraph.ir.message import counted, some
from relax_egraph.workers.pool import run_in_worker
from relax_egraph.workers.process import Death, Limits

OWN_PHASE = ("weights", "lower", "fusion")
"""Rulesets with a phase of their own; all others of the book and of users run in one phase."""


_FAMILY = Kind(f"one of {', '.join(rules.FAMILIES)}", NAME.has_type, rules.FAMILIES.__contains__)
_FIELDS = {
    "families": collection("a tuple of families", _FAMILY, tuple),
    "user": collection("a tuple of Sources", instance("a Source", Source), tuple),
    "without": collection("a frozenset of names", NAME, frozenset),
    "fast_math": FLAG,
    "absent": collection("a frozenset of names", NAME, frozenset),
    "bounded": FLAG,
}


@dataclass(frozen=True, slots=True)
class RuleBook:
    """Rule texts by name; equal books are read once per process.

    Making one reads every text: `RuleError` says all that is wrong with the first that is.  Rules
    of float class ``fast`` are in it with `fast_math` only, those of ``bounded`` if it is
    `bounded`, for a caller that states a tolerance.  It has no rule that could fire only where
    something `absent` is.
    """

    families: tuple[str, ...]
    user: tuple[Source, ...] = ()
    without: frozenset[str] = frozenset()
    fast_math: bool = False
    absent: frozenset[str] = frozenset()
    bounded: bool = False

    def __post_init__(self) -> None:
        check_fields(self, _FIELDS)
        reading = reading_of(self)
        if self.without:
            known = [*rules.FAMILIES, *(rule.name for rule in reading.rules)]
            for name in self.without.difference(known):
                note = near(name, known)
                raise ValueError(f"no family or rule is named {name!r}" + f"; {note}" * bool(note))

    def __repr__(self) -> str:
        counts = counted(len(self.rules), "rule"), counted(len(self.families), "family", "families")
        own = f", {len(self.of_user)} of the user" * bool(self.user)
        return f"<RuleBook: {' in '.join(counts)}{own}>"

    def __str__(self) -> str:
        """A line for each ruleset: how many rules it has, and the first of them."""
        names: dict[str, list[str]] = defaultdict(list)
        for rule in self.rules:
            names[rule.ruleset].append(rule.name)
        lines = (f"  {ruleset} ({len(of)}): {some(of)}" for ruleset, of in names.items())
        return "\n".join((repr(self)[1:-1], *lines))

    @staticmethod
    @takes(
        user=rules.RULES,
        without=NAMES,
        fast_math=FLAG,
        families=collection('a sequence of families, such as ["algebra"]', _FAMILY),
        bounded=FLAG,
    )
    def default(
        user: Iterable[rules.Given] = (),
        without: Iterable[str] = (),
        fast_math: bool = False,
        families: Iterable[str] = rules.FAMILIES,
        bounded: bool = False,
    ) -> "RuleBook":
        """The families of the book (all, or those given) and the user's rules.

        A `user` entry is a path, a text, or what ``rules.load`` returned.  `without` names families
        of the book or single rules that are left out.
        """
        left_out = frozenset(without)
        chosen = tuple(f for f in families if f not in left_out)
        sources = tuple(
            Source(name or ("<rules>" if k == 1 else f"<rules-{k}>"), text, called(text))
            for k, (name, text) in enumerate(rules.read(user).files, 1)
        )
        names = left_out - set(rules.FAMILIES)
        return RuleBook(chosen, sources, names, fast_math, bounded=bounded)

    def for_operators(self, names: Iterable[str]) -> "RuleBook":
        """What of this book can matter to blocks of the operators `names`: ``"add"``."""
        return self.where(f"R.{name}" for name in names)

    def where(self, present: Iterable[str]) -> "RuleBook":
        """What of this book can matter where no operators and relations but these are: ``R.add``.

        Whatever its rules make of them is there, too.
        """
        return replace(self, absent=absent(_chosen(self).texts, present))

    @property
    def rules(self) -> tuple[RuleInfo, ...]:
        """Every rule of the book's and the user's files, in order; without the generated ones."""
        return _chosen(self).rules

    @property
    def rewrites(self) -> tuple[RuleInfo, ...]:
        """The rules that equate values: all but those that deduce facts."""
        return _chosen(self).rewrites

    @property
    def of_user(self) -> frozenset[str]:
        """The names of the rules that are the user's."""
        return _chosen(self).of_user

    @property
    def rulesets(self) -> tuple[str, ...]:
        """The rulesets that a phase can name: families, those of the user's files, ``lower``."""
        used = dict.fromkeys((*self.families, *(r.ruleset for r in self.rewrites), "lower"))
        return (*(r for r in used if r not in OWN_PHASE), *(r for r in OWN_PHASE if r in used))

    @property
    def own(self) -> Mapping[str, str]:
        """By rule the ruleset that has nothing but this rule; a family's ruleset combines them."""
        return _chosen(self).own

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Generated forms, declarations and rules, in order."""
        return (*generated_forms(), *_chosen(self).entries)

    @property
    def generated(self) -> tuple[str, ...]:
        """The generated forms that can matter, in order."""
        return _chosen(self).generated

    @property
    def program(self) -> Program:
        """What makes an empty e-graph one with this vocabulary and these rules.

        Its rulesets are those of the engine, and `own` ones of the rules.
        """
        return _chosen(self).program

    @property
    def program_of_families(self) -> Program:
        """The same, with the rulesets of the families."""
        return _chosen(self).program_of_families

    @property
    def commands(self) -> tuple[Command, ...]:
        """The same, parsed."""
        return commands_of(self.program_of_families.texts, new_egraph())


@dataclass(frozen=True)
class Reading:
    """What was read of texts that have been checked; the first `of_book` entries are the book's.

    `scope` has the names that a further text can use.
    """

    entries: tuple[Entry, ...]
    scope: Scope
    of_book: int

    @property
    def rules(self) -> list[RuleInfo]:
        """The rules among them."""
        return [entry for entry in self.entries if isinstance(entry, RuleInfo)]

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The entries as egglog reads them, each rule in the ruleset that it states."""
        return tuple(e if isinstance(e, str) else e.text(e.ruleset) for e in self.entries)


_Texts = tuple[tuple[str, ...], tuple[Source, ...]]
_adopted: dict[_Texts, Reading] = {}


def reading_of(book: RuleBook) -> Reading:
    """What is read of the texts of `book`; raises `RuleError`."""
    return _adopted.get((book.families, book.user)) or reading_of_texts(book.families, book.user)


def is_adopted(book: RuleBook) -> bool:
    """Whether the reading of `book` is one of another process."""
    return (book.families, book.user) in _adopted


def adopt(book: RuleBook, reading: Reading) -> None:
    """Take `reading`, of another process, for that of `book`: its texts need no second check."""
    _adopted[book.families, book.user] = reading


@lru_cache(64)
def reading_of_texts(families: tuple[str, ...], user: tuple[Source, ...]) -> Reading:
    """What is read of families of the book and texts of the user; raises `RuleError`."""
    if user and not egglog_works():
        return _read_in_worker(families, user)
    if user:
        known = reading_of_texts(families, user[:-1])
        scope = known.scope.copy()
        with prepared(_declarations(families, user[:-1])) as trial:
            added = load(user[-1], scope, trial)
        return Reading((*known.entries, *added), scope, known.of_book)
    return _book(families, None)


def _read_in_worker(families: tuple[str, ...], user: tuple[Source, ...]) -> Reading:
    answer = run_in_worker(partial(reading_of_texts, families, user), Limits(_SECONDS))
    if isinstance(answer, Death):
        raise SaturationError(
            f"the rules are not read: the worker process {answer} before it began"
        )
    return answer


_SECONDS = 60.0
"""What a worker may take to read rules."""


def check_book(families: tuple[str, ...] = rules.FAMILIES) -> None:
    """Raise `RuleError` if a text of the book itself is wrong, which runs trust not to be."""
    trial = new_egraph()
    for text in generated_forms():
        run_text(trial, text)
    _book(families, trial)


def _book(families: tuple[str, ...], trial: EGraph | None) -> Reading:
    scope = Scope(rules=dict.fromkeys(generated_names()), trusted=True)
    entries: list[Entry] = []
    for family in (*rules.FACTS, *families):
        entries += load(Source(f"rules/{family}.egg", rules.text(family)), scope, trial)
        if family == rules.FACTS[-1]:
            scope.closed = _closed(scope)
    scope.trusted = False
    return Reading(tuple(entries), scope, len(entries))


def _closed(scope: Scope) -> frozenset[str]:
    """The facts of which `scope` has the names, and those that are generated."""
    known = {name for name, d in scope.declarations.items() if d.kind in ("function", "relation")}
    generated = (
        f.split()[1] for f in generated_forms() if f.startswith(("(function", "(relation"))
    )
    return frozenset((*known, *generated)) - {*WRITTEN_BY_RULES}


@lru_cache(16)
def _declarations(families: tuple[str, ...], user: tuple[Source, ...]) -> Program:
    """What a further text can build on: everything but the rules."""
    entries = reading_of_texts(families, user).entries
    forms = (*generated_forms(), *(e for e in entries if isinstance(e, str)))
    return Program(("declarations", families, user), forms)


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The rules of a book that are to run, and how egglog is told of them."""

    generated: tuple[str, ...]
    entries: tuple[Entry, ...]
    texts: tuple[str, ...]
    rules: tuple[RuleInfo, ...]
    rewrites: tuple[RuleInfo, ...]
    of_user: frozenset[str]
    own: Mapping[str, str]
    program: Program
    program_of_families: Program


@lru_cache(64)
def _chosen(book: RuleBook) -> _Chosen:
    reading = reading_of(book)
    known = [
        (entry, text)
        for entry, text in zip(reading.entries, reading.texts, strict=True)
        if (isinstance(entry, str) or _runs(entry, book)) and _can_matter(text, book)
    ]
    entries = tuple(entry for entry, _ in known)
    chosen = tuple(e for e in entries if isinstance(e, RuleInfo))
    rewrites = tuple(r for r in chosen if r.ruleset not in rules.FACTS)
    of_user = {e.name for e in reading.entries[reading.of_book :] if isinstance(e, RuleInfo)}
    own = {rule.name: f"engine/own/{k}" for k, rule in enumerate(reading.rules)}
    generated = tuple(f for f in generated_forms() if _can_matter(f, book))
    forms, rulesets = forms_of(generated, entries, own)
    # of a file of the user a variable may have the name of what is declared behind it
    vocabulary = book.families, book.user, book.absent if book.user else None
    engine = [text for name, text in rulesets.items() if name in (*ENGINE_RULESETS, "lower")]
    return _Chosen(
        generated,
        entries,
        (*generated, *(text for _, text in known)),
        chosen,
        rewrites,
        frozenset(of_user),
        {rule.name: own[rule.name] for rule in rewrites},
        Program(vocabulary, forms, " ".join(engine)),
        Program(vocabulary, forms, " ".join(rulesets.values())),
    )


def _can_matter(text: str, book: RuleBook) -> bool:
    return not book.absent or can_matter(text, book.absent)


def _runs(rule: RuleInfo, book: RuleBook) -> bool:
    left_out = {"fast": not book.fast_math, "bounded": not book.bounded}
    return rule.name not in book.without and not left_out.get(rule.float_class, False)


def check_rules(loaded: rules.Rules, without: tuple[str, ...]) -> None:
    """Read `loaded` beside the book; raises `RuleError`."""
    RuleBook.default([loaded], without)
