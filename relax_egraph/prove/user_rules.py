"""Proofs of a user's rule files beside the rule book, for ``relax_egraph.rules.prove``."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from relax_egraph import rules
from relax_egraph.base.interruption import collected
from relax_egraph.base.journal import Journal
from relax_egraph.base.progress import watched
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.prove.certificate import Certificate
from relax_egraph.prove.questions import z3
from relax_egraph.prove.tasks import certificates_of
from relax_egraph.prove.verdict import Verdict as Verdict
from relax_egraph.verify.selection import selected
from relax_egraph.workers.executor import ExecutorOf

Progress: TypeAlias = Callable[[Verdict], object]
"""A callback for each verdict."""


def prove_user_rules(
    of_user: rules.Rules, only: Iterable[str] | None = None, *, progress: Progress | None
) -> tuple[Verdict, ...]:
    """The verdicts on the rules `of_user` that equate values, or on those of the book.

    Raises ``ValueError`` for a file without rules, and for a name that no rule has.
    """
    book = RuleBook.default([of_user], fast_math=True, bounded=True)
    known = equating(book)
    names = selected(book, known, only, done="proven", that=" that equates values")
    by_name = {rule.name: rule for rule in known}
    with watched(progress, "proving rules", len(names)) as told:
        return prove_rules(book, [by_name[name] for name in names], told)


def equating(book: RuleBook) -> list[Rule]:
    """The rules of `book` that equate values; the others deduce facts."""
    return [r for r in book.rules if any(d.unites for d in r.directions)]


def prove_rules(
    book: RuleBook, some: Sequence[Rule], progress: Progress | None = None
) -> tuple[Verdict, ...]:
    """The verdicts on `some` rules of `book`.

    Raises ``ModuleNotFoundError`` without z3; `Interrupted` has the verdicts so far.
    """
    verdicts = (made.verdict for made in certificates(book, some, progress))
    return collected(verdicts, len(some), "rules were tried")


def certificates(
    book: RuleBook,
    some: Sequence[Rule],
    progress: Progress | None = None,
    executor: ExecutorOf | None = None,
    journal: Journal | None = None,
) -> Iterator[Certificate]:
    """The certificates of `some` rules of `book` as in `certificates_of`.

    Raises ``ModuleNotFoundError`` without z3.
    """
    z3()
    for made in certificates_of(book, some, executor, journal):
        if progress is not None:
            progress(made.verdict)
        yield made
