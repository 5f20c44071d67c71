"""The cache of rule books that are read and checked, once per process."""

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TypeAlias

from relax_egraph import rules
from relax_egraph.egraph.bindings import EGraph
from relax_egraph.egraph.commands import run_text
from relax_egraph.egraph.encoding.prepared import Program, prepared
from relax_egraph.egraph.forks import egglog_works, new_egraph
from relax_egraph.egraph.rulebook.forms import Source
from relax_egraph.egraph.rulebook.generate import generated, generated_rules
from relax_egraph.egraph.rulebook.loader import load
from relax_egraph.egraph.rulebook.rule import Entry, Rule, Statement
from relax_egraph.egraph.rulebook.scope import WRITTEN_BY_RULES, Scope, declarations_in
from relax_egraph.errors import SaturationError
from relax_egraph.ir.operators import Operators, in_force
from relax_egraph.workers.pool import run_in_worker
from relax_egraph.workers.process import Death, Limits


@dataclass(frozen=True, eq=False)
class Reading:
    """The checked entries of `families` of the book and of texts of the `user`.

    The first `of_book` entries are the book's.  `scope` has the names that a further text can use.
    """

    families: tuple[str, ...]
    user: tuple[Source, ...]
    operators: Operators
    entries: tuple[Entry, ...]
    scope: Scope
    of_book: int

    @property
    def rules(self) -> list[Rule]:
        """The rules among the entries."""
        return [entry for entry in self.entries if isinstance(entry, Rule)]


_Texts: TypeAlias = tuple[tuple[str, ...], tuple[Source, ...], Operators]
_adopted: dict[_Texts, Reading] = {}


def reading_of(
    families: tuple[str, ...], user: tuple[Source, ...], operators: Operators
) -> Reading:
    """The entries of families of the book and texts of the user; raises `RuleError`.

    They may use `operators`.
    """
    texts = families, user, operators
    return _adopted.get(texts) or _reading_of(*texts)


def is_adopted(families: tuple[str, ...], user: tuple[Source, ...], operators: Operators) -> bool:
    """Whether the reading of these texts came from another process."""
    return (families, user, operators) in _adopted


def adopt(reading: Reading) -> None:
    """Cache `reading`, from another process: its texts need no second check."""
    _adopted[reading.families, reading.user, reading.operators] = reading


@lru_cache(64)
def _reading_of(
    families: tuple[str, ...], user: tuple[Source, ...], operators: Operators
) -> Reading:
    with operators.in_force():
        return _read(families, user, operators)


def _read(families: tuple[str, ...], user: tuple[Source, ...], operators: Operators) -> Reading:
    if user and not egglog_works():
        return _read_in_worker(families, user, operators)
    if user:
        known = _reading_of(families, user[:-1], operators)
        scope = known.scope.copy()
        with prepared(_declarations(known)) as trial:
            added = load(user[-1], scope, trial)
        entries = (*known.entries, *added)
        return Reading(families, user, operators, entries, scope, known.of_book)
    return _book(families, operators, None)


def _read_in_worker(
    families: tuple[str, ...], user: tuple[Source, ...], operators: Operators
) -> Reading:
    answer = run_in_worker(partial(_reading_of, families, user, operators), Limits(_SECONDS))
    if isinstance(answer, Death):
        raise SaturationError(
            f"the rules are not read: the worker process {answer} before it began"
        )
    return replace(answer, operators=operators)


_SECONDS = 60.0
"""The time limit of a worker that reads rules."""


def check_book(families: tuple[str, ...] = rules.FAMILIES) -> None:
    """Check the texts of the book itself, which runs trust; raises `RuleError`."""
    trial = new_egraph()
    for entry in generated():
        run_text(trial, entry.text)
    _book(families, in_force(), trial)


def check_family(family: str, source: Source) -> list[Entry]:
    """The entries of `source`, as the file of a family of the book; raises `RuleError`.

    It is read after the files before it.
    """
    files = (*rules.FACTS, *rules.FAMILIES)
    before = _before(files[: files.index(family)], in_force())
    with prepared(_declarations(before)) as trial:
        return load(source, before.scope.copy(), trial)


@lru_cache(4)
def _before(families: tuple[str, ...], operators: Operators) -> Reading:
    return _files(families, operators, None)


def _book(families: tuple[str, ...], operators: Operators, trial: EGraph | None) -> Reading:
    reading = _files((*rules.FACTS, *families), operators, trial)
    reading.scope.trusted = False
    return replace(reading, families=families)


def _files(families: tuple[str, ...], operators: Operators, trial: EGraph | None) -> Reading:
    """The entries of families of the book; their scope is open for more."""
    scope = Scope(rules=dict.fromkeys(rule.name for rule in generated_rules()), trusted=True)
    entries: list[Entry] = []
    for family in families:
        entries += load(Source(f"rules/{family}.egg", rules.text(family)), scope, trial)
        if family == rules.FACTS[-1]:
            scope.closed = _closed(scope)
    return Reading(families, (), operators, tuple(entries), scope, len(entries))


def _closed(scope: Scope) -> frozenset[str]:
    """The names of facts in `scope`, and of generated facts, that users' rules must not write."""
    known = {name for name, d in scope.declarations.items() if d.kind in ("function", "relation")}
    facts = (e.form for e in generated() if e.form.head in ("function", "relation"))
    named = (declaration.name for form in facts for declaration in declarations_in(form))
    return frozenset((*known, *named)) - {*WRITTEN_BY_RULES}


@lru_cache(16)
def _declarations(reading: Reading) -> Program:
    """The declarations of a reading, without its rules: the vocabulary for a further text."""
    forms = [e.text for e in (*generated(), *reading.entries) if isinstance(e, Statement)]
    return Program(("declarations", reading.operators, reading.families, reading.user), forms)
