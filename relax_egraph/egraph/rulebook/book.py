"""The rule book of a run: the families of the book and the rules of the user's files."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

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
from relax_egraph.egraph.encoding.prepared import Program
from relax_egraph.egraph.functions.function import called
from relax_egraph.egraph.rulebook.forms import Source
from relax_egraph.egraph.rulebook.generate import generated
from relax_egraph.egraph.rulebook.meaning import Meaning
from relax_egraph.egraph.rulebook.reading import Reading, reading_of
from relax_egraph.egraph.rulebook.relevant import Relevance, can_matter
from relax_egraph.egraph.rulebook.rule import Entry, Rule, Statement
from relax_egraph.egraph.rulebook.rulesets import forms_of
from relax_egraph.egraph.rulebook.scope import (
    ENGINE_RULESETS,
    declarations_in,
    near,
)
from relax_egraph.egraph.rulebook.vocabulary import Declaration
from relax_egraph.ir.message import counted, some
from relax_egraph.ir.operators import Operators, in_force

_OF_ALL_VALUES = ("dim", "facts")
"""The families of facts that every value has, and the engine deduces."""

OWN_PHASE = ("images", "weights", "lower", "fusion")
"""Rulesets with a phase of their own; all others of the book and of users run in one phase."""


_FAMILY = Kind(f"one of {', '.join(rules.FAMILIES)}", NAME.has_type, rules.FAMILIES.__contains__)
_FIELDS = {
    "families": collection("a tuple of families", _FAMILY, tuple),
    "user": collection("a tuple of Sources", instance("a Source", Source), tuple),
    "without": collection("a frozenset of names", NAME, frozenset),
    "fast_math": FLAG,
    "absent": collection("a frozenset of names", NAME, frozenset),
    "bounded": FLAG,
    "operators": instance("a set of operators", Operators),
}


@dataclass(frozen=True, slots=True)
class RuleBook:
    """The rules of a run, as names of families and texts; equal books are read once per process.

    The constructor reads every text: it raises a `RuleError` with all errors of the first wrong
    text.  Rules of float class ``fast`` need `fast_math`; rules of class ``bounded`` need
    `bounded`, for a caller that states a tolerance.  Rules that match an `absent` operator or
    relation are left out, as they cannot fire.  `operators` are those that its rules can use.
    """

    families: tuple[str, ...]
    user: tuple[Source, ...] = ()
    without: frozenset[str] = frozenset()
    fast_math: bool = False
    absent: frozenset[str] = frozenset()
    bounded: bool = False
    operators: Operators = field(default_factory=in_force)

    def __post_init__(self) -> None:
        check_fields(self, _FIELDS)
        reading = self.reading
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
        """A line for each ruleset: its number of rules, and its first rules."""
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
        """The book with `families`, by default all, and the user's rules.

        A `user` entry is a path, a text, or a result of ``rules.load``.  `without` names families
        of the book or single rules to leave out.
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
        """The part of this book that can fire in blocks of the operators `names`: ``"add"``."""
        return self.where(f"R.{name}" for name in names)

    def where(self, present: Iterable[str]) -> "RuleBook":
        """The part of this book that can fire in an e-graph that begins with `present`: ``R.add``.

        Operators and relations that its rules add count as present, too.
        """
        with self.operators.in_force():
            return replace(self, absent=_chosen(self).relevance.absent(present))

    @property
    def reading(self) -> Reading:
        """The entries and the scope that its texts declare."""
        return reading_of(self.families, self.user, self.operators)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Every rule of the book's and the user's files, in order; without the generated ones."""
        return _chosen(self).rules

    @property
    def rewrites(self) -> tuple[Rule, ...]:
        """The rules that equate values: all but those that deduce facts."""
        return _chosen(self).rewrites

    @property
    def checked(self) -> tuple[Rule, ...]:
        """The rules that can be checked: all but those for shapes, dtypes and the like.

        Of a book without families they are the user's.
        """
        if not self.families:
            return self.rewrites
        return tuple(rule for rule in self.rules if rule.ruleset not in _OF_ALL_VALUES)

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
        """The ruleset of each single rule, by its name; the ruleset of a family combines them."""
        return _chosen(self).own

    @property
    def declarations(self) -> Mapping[str, Declaration]:
        """The constructors, functions and relations that its rules may use, by name."""
        with self.operators.in_force():
            return _chosen(self).declarations

    @property
    def meanings(self) -> Mapping[str, Meaning]:
        """The stated meanings of relations and functions, by name."""
        return self.reading.scope.meanings

    @property
    def lowering(self) -> tuple[Rule, ...]:
        """The rules that lower operators to kernels, without the rules that cannot fire."""
        generated = (e for e in _chosen(self).generated if isinstance(e, Rule))
        return tuple(rule for rule in generated if rule.ruleset == "lower")

    @property
    def program(self) -> Program:
        """The egglog program that declares this vocabulary and these rules in an empty e-graph.

        Its rulesets are the engine's, and the `own` ruleset of each rule.
        """
        return _chosen(self).program

    @property
    def program_of_families(self) -> Program:
        """The same, with the rulesets of the families."""
        return _chosen(self).program_of_families


@dataclass(frozen=True)
class _Chosen:
    """The rules of a book that can fire, and the egglog programs that declare them."""

    generated: tuple[Entry, ...]
    entries: tuple[Entry, ...]
    rules: tuple[Rule, ...]
    rewrites: tuple[Rule, ...]
    of_user: frozenset[str]
    own: Mapping[str, str]
    program: Program
    program_of_families: Program

    @cached_property
    def relevance(self) -> Relevance:
        """The test of which rules can fire in a program."""
        return Relevance((*self.generated, *self.entries))

    @cached_property
    def declarations(self) -> Mapping[str, Declaration]:
        """The declarations of all entries, by name."""
        forms = (e.form for e in (*generated(), *self.entries) if isinstance(e, Statement))
        return {d.name: d for form in forms for d in declarations_in(form)}


@lru_cache(64)
def _chosen(book: RuleBook) -> _Chosen:
    with book.operators.in_force():
        return _chosen_in_force(book)


def _chosen_in_force(book: RuleBook) -> _Chosen:
    reading = book.reading
    runs = (e for e in reading.entries if isinstance(e, Statement) or _runs(e, book))
    entries = tuple(entry for entry in runs if _can_matter(entry, book))
    chosen = tuple(e for e in entries if isinstance(e, Rule))
    rewrites = tuple(r for r in chosen if r.ruleset not in rules.FACTS)
    of_user = {e.name for e in reading.entries[reading.of_book :] if isinstance(e, Rule)}
    own = {rule.name: f"engine/own/{k}" for k, rule in enumerate(reading.rules)}
    relevant = tuple(entry for entry in generated() if _can_matter(entry, book))
    forms, rulesets = forms_of((*relevant, *entries), own)
    # a variable in a file of the user may have a name that a later statement declares
    vocabulary = book.operators, book.families, book.user, book.absent if book.user else None
    engine = [text for name, text in rulesets.items() if name in (*ENGINE_RULESETS, "lower")]
    return _Chosen(
        relevant,
        entries,
        chosen,
        rewrites,
        frozenset(of_user),
        {rule.name: own[rule.name] for rule in rewrites},
        Program(vocabulary, forms, " ".join(engine)),
        Program(vocabulary, forms, " ".join(rulesets.values())),
    )


def _can_matter(entry: Entry, book: RuleBook) -> bool:
    return not book.absent or can_matter(entry, book.absent)


def _runs(rule: Rule, book: RuleBook) -> bool:
    left_out = {"fast": not book.fast_math, "bounded": not book.bounded}
    return rule.name not in book.without and not left_out.get(rule.float_class, False)


def check_rules(loaded: rules.Rules, without: tuple[str, ...]) -> None:
    """Read `loaded` beside the book; raises `RuleError`."""
    RuleBook.default([loaded], without)
