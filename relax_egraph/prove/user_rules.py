"""Proofs of a user's rule files beside the rule book, for ``relax_egraph.rules.prove``."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from relax_egraph import rules
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.egraph.rulebook.scope import near
from relax_egraph.prove.prove import prove
from relax_egraph.prove.refutation import refuted
from relax_egraph.prove.solver import z3
from relax_egraph.prove.verdict import Verdict as Verdict

Progress: TypeAlias = Callable[[Verdict], object]
"""A callback for each verdict."""


def prove_user_rules(
    of_user: rules.Rules, only: Iterable[str] | None = None, *, progress: Progress | None
) -> tuple[Verdict, ...]:
    """The verdicts on the rules `of_user` that equate values, or on those of the book.

    Raises ``ValueError`` for a file without rules, and for a name that no rule has.
    """
    book = RuleBook.default([of_user], fast_math=True, bounded=True)
    for source in book.user:
        if all(rule.span.file != source.name for rule in book.rules):
            raise ValueError(f"{source.name} has no rules: none was proven")
    known = {r.name: r for r in equating(book) if not book.user or r.name in book.of_user}
    names = list(known) if only is None else list(only)
    for name in names:
        if name not in known:
            whose = "the files" if book.user else "the book"
            note = near(name, known)
            message = f"no rule of {whose} that equates values is named {name!r}"
            raise ValueError(message + f"; {note}" * bool(note))
    return prove_rules(book, [known[n] for n in names], progress)


def equating(book: RuleBook) -> list[Rule]:
    """The rules of `book` that equate values; the others deduce facts."""
    return [r for r in book.rules if any(d.unites for d in r.directions)]


def prove_rules(
    book: RuleBook, some: Sequence[Rule], progress: Progress | None = None
) -> tuple[Verdict, ...]:
    """The verdicts on `some` rules of `book`; raises ``ModuleNotFoundError`` without z3."""
    z3()
    verdicts: list[Verdict] = []
    for rule in some:
        verdict = prove(rule, book)
        verdicts.append(refuted(verdict, book) or verdict)
        if progress is not None:
            progress(verdicts[-1])
    return tuple(verdicts)
