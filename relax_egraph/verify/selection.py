"""The rules of a user's files, or of the book, that are checked or proven."""

from collections.abc import Iterable, Sequence

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.egraph.rulebook.scope import near


def selected(
    book: RuleBook, rules: Sequence[Rule], only: Iterable[str] | None, *, done: str, that: str = ""
) -> list[str]:
    """The names of `rules` of the user's files, or of the book without files, or those in `only`.

    Raises ``ValueError`` for a file without rules, of which none was `done`, and for a name that is
    of none of the `rules`, all of which do `that`.
    """
    for source in book.user:
        if all(rule.span.file != source.name for rule in book.rules):
            raise ValueError(f"{source.name} has no rules: none was {done}")
    known = [r.name for r in rules if not book.user or r.name in book.of_user]
    names = known if only is None else list(only)
    for name in names:
        if name not in known:
            whose, note = "the files" if book.user else "the book", near(name, known)
            message = f"no rule of {whose}{that} is named {name!r}"
            raise ValueError(message + f"; {note}" * bool(note))
    return names
