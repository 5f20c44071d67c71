"""The check of a user's rule files beside the rule book, for ``relax_egraph.rules.check``."""

import os
from collections.abc import Iterable

from relax_egraph import rules
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.scope import near
from relax_egraph.verify.cases import cases_of
from relax_egraph.verify.check import Progress, check_rules
from relax_egraph.verify.file_tests.cases import book_tests
from relax_egraph.verify.verdict import Verdict as Verdict


def check_user_rules(
    of_user: rules.Rules,
    only: Iterable[str] | None = None,
    *,
    trials: int,
    seed: int,
    processes: int | None,
    progress: Progress | None,
) -> tuple[Verdict, ...]:
    """The verdicts on the rules `of_user`, or on those of the book if there are none.

    Raises ``ValueError`` for a file without rules, and for a name that no rule has.
    """
    if trials < 1:
        raise ValueError(f"a rule is tried at least once, and not {trials} times")
    book = RuleBook.default([of_user], fast_math=True, bounded=True)
    for source in book.user:
        if all(rule.span.file != source.name for rule in book.rules):
            raise ValueError(f"{source.name} has no rules: none was checked")
    known = [r.name for r in book.checked if not book.user or r.name in book.of_user]
    names = known if only is None else list(only)
    for name in names:
        if name not in known:
            whose = "the files" if book.user else "the book"
            note = near(name, known)
            raise ValueError(f"no rule of {whose} is named {name!r}" + f"; {note}" * bool(note))
    processes = processes or max(2, os.cpu_count() or 1)
    cases = [c for path in book_tests() for c in cases_of(path.read_text("utf-8"), path.name)]
    return check_rules(
        book, names, cases, trials=trials, seed=seed, processes=processes, progress=progress
    )
