"""The check of a user's rule files beside the rule book, for ``relax_egraph.rules.check``."""

import os
from collections.abc import Iterable

from relax_egraph import rules
from relax_egraph.base.progress import watched
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.verify.cases import cases_of
from relax_egraph.verify.check import Progress, check_rules
from relax_egraph.verify.file_tests.cases import book_tests
from relax_egraph.verify.selection import selected
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
    names = selected(book, book.checked, only, done="checked")
    processes = processes or max(2, os.cpu_count() or 1)
    cases = [c for path in book_tests() for c in cases_of(path.read_text("utf-8"), path.name)]
    with watched(progress, "checking rules", len(names)) as told:
        return check_rules(
            book, names, cases, trials=trials, seed=seed, processes=processes, progress=told
        )
