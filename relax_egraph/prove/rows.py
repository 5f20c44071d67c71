"""Why a table may have other rows than those that rules add by an action of their own."""

from collections.abc import Mapping
from functools import cache

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.forms import Form, written
from relax_egraph.egraph.rulebook.rule import Statement
from relax_egraph.verify.instances.makers import makers_of


def others(name: str, book: RuleBook) -> str:
    """Why the rows of `name` may be others than those that rules add; empty if they are not.

    A function of values is only looked up within terms.
    """
    table = tables_of(book).get(name)
    looked_up = table is not None and table.head == "function"
    if (makers := makers_of(book).within.get(name)) and not looked_up:
        return f"{makers[0].name}: it adds to {name} within another term"
    merge = _merges(book).get(name, "old")
    if merge not in _CHOOSING:
        return f"two values of {name} are merged by {merge}"
    return ""


def of_user(name: str, book: RuleBook) -> str:
    """Which rule of a user adds to a fact that proofs believe, or to what that is deduced from.

    Empty if none does.
    """
    makers = makers_of(book)
    for read in (name, *sorted(makers.under.get(name, ()))):
        by = "which" if read == name else f"from which {name} is deduced, which"
        for maker in makers.adding(read):
            if maker.rule.name in book.of_user:
                return f"{maker.rule.name} adds to {read}, {by} proofs believe"
    return ""


@cache
def tables_of(book: RuleBook) -> Mapping[str, Form]:
    """The declarations of relations and functions, by their name."""
    statements = (s.form for s in book.reading.entries if isinstance(s, Statement))
    tables = (form for form in statements if form.head in ("relation", "function"))
    return {written(form.items[1]): form for form in tables}


@cache
def _merges(book: RuleBook) -> Mapping[str, str]:
    """How functions merge two values, where they say it."""
    merges: dict[str, str] = {}
    for name, form in tables_of(book).items():
        options = [*map(written, form.items)]
        if ":merge" in options:
            merges[name] = options[options.index(":merge") + 1]
    return merges


_CHOOSING = ("old", "new", "(min old new)", "(max old new)")
"""Merges whose value is one of both."""
