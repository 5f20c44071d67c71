"""Stated meanings: what the rows of a relation say, in terms of operators.

    ; (times-number y x c): y = x · c, c one finite number
    (relation times-number (Tensor Tensor f64))
    (meaning (times-number y x c)
      ((= y (R.multiply x (R.broadcast_to (R.const c d) s))) (= d (dtype-of x))
       (= s (shape-of x)) (< -inf c) (< c inf)))

Where the row is, the facts hold; of several lists of facts, those of one.  Runs do without
meanings: a proof of a rule that reads the relation assumes its meaning, after it is shown for each
rule that adds a row.
"""

from collections.abc import Sequence
from dataclasses import dataclass

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
from relax_egraph.egraph.rulebook.rule import Row, row_of
from relax_egraph.egraph.rulebook.scope import Scope, near, vocabulary

_USAGE = "(meaning (twice-of y x) ((= y (R.add x x))))"


@dataclass(frozen=True, slots=True, eq=False)
class Meaning:
    """What a `row` says, whose arguments are variables: the facts of one of the `ways` hold."""

    row: Row
    ways: tuple[tuple[Tree, ...], ...]

    def named(self, args: Sequence[Tree], value: Tree | None) -> dict[str, Tree] | None:
        """Terms for the variables of the row in one with `args`; ``None`` if it has others."""
        names: dict[str, Tree] = {}
        pairs = [*zip(self.row.args, args, strict=True)]
        if self.row.value is not None and value is not None:
            pairs.append((self.row.value, value))
        return names if all(_name(ours, theirs, names) for ours, theirs in pairs) else None

    @property
    def constructors(self) -> frozenset[str]:
        """The constructors that take the row apart."""
        trees = (*self.row.args, *filter(None, (self.row.value,)))
        return frozenset(tree.head for tree in trees if isinstance(tree, Form))


def _name(ours: Tree, theirs: Tree, names: dict[str, Tree]) -> bool:
    if isinstance(ours, Atom):
        names[ours.text] = theirs
        return True
    if not isinstance(theirs, Form) or theirs.head != ours.head:
        return False
    pairs = zip(ours.items[1:], theirs.items[1:], strict=True)
    return all(_name(a, b, names) for a, b in pairs)


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
