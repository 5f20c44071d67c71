"""Reads and checks the forms that state what a relation means."""

from collections.abc import Sequence

from relax_egraph.egraph.rulebook.check import check_rule
from relax_egraph.egraph.rulebook.forms import (
    Atom,
    Form,
    Source,
    Tree,
    atoms,
    form_of,
    is_literal,
    premises_of,
    written,
)
from relax_egraph.egraph.rulebook.meaning import Meaning
from relax_egraph.egraph.rulebook.rule import Row, row_of
from relax_egraph.egraph.rulebook.scope import Scope, near, vocabulary

_USAGE = "(meaning (twice-of y x) ((= y (R.add x x))))"


def as_rules(form: Form, source: Source) -> list[Form]:
    """A meaning as rules without actions: the row, and the facts of each way."""
    items = form.items[1:]
    row = row_of(items[0]) if items else None
    ways = [i for i in items[1:] if isinstance(i, Form) and i.items and not i.head]
    if row is None or not ways or len(ways) != len(items) - 1:
        raise source.error(form, f"a meaning is written {_USAGE}")
    bodies = [Form((items[0], *way.items), way.start, way.end) for way in ways]
    return [
        Form((Atom("rule", form.start), body, form_of(at=form.end)), form.start, form.end)
        for body in bodies
    ]


def state(form: Form, rules: Sequence[Form], source: Source, scope: Scope, *, check: bool) -> None:
    """Add the meaning `form` to `scope`, each way of which is one of `rules`."""
    row = row_of(form.items[1])
    assert row is not None
    if check:
        _check(form, row, source, scope)
        for rule in rules:
            check_rule(rule, source, scope)
    scope.meanings[row.head] = Meaning(row, tuple(premises_of(rule)[1:] for rule in rules))


def _check(form: Form, row: Row, source: Source, scope: Scope) -> None:
    """Raise `RuleError` unless `row` is one of a relation or function of rules, of variables."""
    name = row.head
    if name not in scope.declarations:
        known = near(name, scope.declarations)
        raise source.error(form, f"{name} is not declared", known or "declare it above")
    engine = {d.name for d in vocabulary()} | scope.functions | scope.closed
    if name in engine or name.startswith(("R.", "K.")):
        note = "a meaning is of a relation or function whose rows rules add"
        raise source.error(form, f"what {name} means the engine knows", note)
    if name in scope.meanings:
        note = "several lists of facts in one meaning are alternatives"
        raise source.error(form, f"{name} has a meaning already", note)
    names: list[str] = []
    for tree in (*row.args, *filter(None, (row.value,))):
        names += _variables(tree, source)
    for tree in atoms(form.items[1]):
        if names.count(tree.text) > 1:
            note = "a meaning is of every row: say in a fact what is equal"
            raise source.error(tree, f"{tree.text} stands twice", note)


def _variables(tree: Tree, source: Source) -> list[str]:
    """The variables in an argument: it is one, or a constructor of some."""
    if isinstance(tree, Form) and not tree.head.startswith(("R.", "K.")):
        return [name for item in tree.items[1:] for name in _variables(item, source)]
    if isinstance(tree, Form) or is_literal(tree.text) or tree.text == "_":
        note = "a meaning is of every row: say in a fact what a column is"
        raise source.error(tree, f"{written(tree)} is no variable", note)
    return [tree.text]
