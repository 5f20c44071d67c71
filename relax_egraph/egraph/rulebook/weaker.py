"""Rules that assume less: one premise fewer, or a looser comparison in one."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.forms import Atom, Form, Source, Tree, premises_in, written
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.rules import FAMILIES

_LOOSER = {"<": "<=", ">": ">="}


def without(form: Form, number: int) -> Form:
    """The rule `form` without one of its premises."""
    premises = premises_in(form)
    assert premises is not None
    items = (*premises.items[:number], *premises.items[number + 1 :])
    return with_item(form, form.items.index(premises), replace(premises, items=items))


def looser(form: Form, number: int) -> Iterator[tuple[str, Form]]:
    """The rule `form` with a looser comparison in one of its premises; and what is changed."""
    premises = premises_in(form)
    assert premises is not None
    for change, other in everywhere(premises.items[number], _looser):
        yield (
            change,
            with_item(form, form.items.index(premises), with_item(premises, number, other)),
        )


def everywhere(
    tree: Tree, change: Callable[[Tree], Iterator[tuple[str, Tree]]]
) -> Iterator[tuple[str, Tree]]:
    """`tree` with one `change`, at any place within it."""
    yield from change(tree)
    if isinstance(tree, Form):
        for at, item in enumerate(tree.items):
            for what, other in everywhere(item, change):
                yield what, with_item(tree, at, other)


def with_item(form: Form, at: int, item: Tree) -> Form:
    """`form` with another item at a place."""
    return replace(form, items=(*form.items[:at], item, *form.items[at + 1 :]))


def replaced(book: RuleBook, rule: Rule, form: Form, name: str) -> RuleBook:
    """`book` with a rule `name` of `form` in place of `rule`; raises `RuleError` if it is none."""
    ruleset = f":ruleset {rule.ruleset} " * (rule.ruleset in FAMILIES)
    text = f'; float: {rule.float_class}\n{written(form)[:-1]} {ruleset}:name "{name}")'
    without = {rule.name}.intersection(r.name for r in book.rules)
    user = (*book.user, Source(f"{name}.egg", text))
    return replace(book, user=user, without=book.without | without)


def _looser(tree: Tree) -> Iterator[tuple[str, Tree]]:
    if isinstance(tree, Form) and tree.head in _LOOSER:
        other = with_item(tree, 0, Atom(_LOOSER[tree.head], tree.start))
        yield f"{written(other)} for {written(tree)}", other
