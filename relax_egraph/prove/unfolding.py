"""Premises that other rules deduce, replaced by what they mean, or by the patterns of these rules.

A relation holds only where some rule deduced it: a rule that reads it is proven for each of them,
or for the stated meaning of the relation, which `induction` shows for each of them.  Facts that
only steer the engine are left out, which assumes less.  Names that are made here have a space in
them, which no variable of a rule has.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeAlias

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.forms import (
    Atom,
    Form,
    Tree,
    form_of,
    forms_in,
    heads,
    is_literal,
    variables,
)
from relax_egraph.egraph.rulebook.generate import APPLICATIONS
from relax_egraph.egraph.rulebook.meaning import Meaning
from relax_egraph.egraph.rulebook.rule import Direction, Row
from relax_egraph.prove.arranging import arranged, with_floats, with_lists, with_numbers
from relax_egraph.prove.rows import of_user, others
from relax_egraph.verify.instances.makers import Makers, makers_of
from relax_egraph.verify.instances.query import literal_of

STEERING = frozenset(
    (
        *("source-index", "uses-of", "only-used-by", "wanted", "addend", "varies", "is-const"),
        *("beside", "together", "last-step", "affine-level", "within-tolerance", "static-prefix"),
        *("is-static", "dim-text", "is-moderate"),
        *("is-ordinary", "formula-number", "has-channels", "write-out-rotary"),
    )
)
"""Facts that steer the engine, or keep numbers from overflow: no proof assumes them."""

KNOWN = frozenset(
    (
        *("shape-of", "rank-of", "dtype-of", "numel-of", "const-scalar", "is-float"),
        *("is-number", "is-nonnegative", "low-of", "high-of", "magnitude-of", "has-reciprocal"),
        *APPLICATIONS,
    )
)
"""Facts that a general form knows by itself."""

BELIEVED = KNOWN - {"const-scalar"}
"""Of these, what a rule adds is not shown by its own proof."""

BUILT = "built="
"""An equation with a term that a rule made: it has to be well-typed, as the right side."""

ROUNDED = "rounded number"
"""A fact: a variable is a number, which the engine may have rounded."""

_OF_NUMBERS = frozenset(
    ("+", "-", "*", "/", "neg", "abs", "min", "max", "<", "<=", ">", ">=", "!=")
)
"""Functions and comparisons of numbers, which do not say that two are equal."""

MOST = 96
"""The most combinations of rules that deduce the premises of one rule."""


class Recursive(Exception):
    """A relation without a meaning is deduced from itself, in too many ways, or by other means."""


@dataclass(frozen=True)
class Unfolded:
    """Facts over operators only, in the order of the rule.

    They are those of `rules`, and of stated `meanings` of relations.
    """

    facts: tuple[Tree, ...]
    rules: tuple[str, ...] = ()
    meanings: tuple[str, ...] = ()


def unfolded(direction: Direction, book: RuleBook) -> list[Unfolded]:
    """Every way in which the premises of `direction` may hold; raises `Recursive`."""
    results: list[Unfolded] = []
    outer = frozenset(variables(direction.body))
    unfolding = _Unfolding(book, makers_of(book), outer)
    for result in unfolding.ways([(f, ()) for f in _with_names(direction.body)], (), ()):
        results.append(result)
        if len(results) > MOST:
            raise Recursive(f"its premises are deduced in more than {MOST} ways")
    return results


_Traced: TypeAlias = tuple[Tree, tuple[str, ...]]
"""A fact, and the relations that were unfolded to it."""

_Names: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class _Unfolding:
    """Replaces premises by the rules that deduce them, or by stated meanings."""

    book: RuleBook
    makers: Makers
    outer: frozenset[str]

    def ways(self, facts: Sequence[_Traced], rules: _Names, meanings: _Names) -> Iterator[Unfolded]:
        """Every way in which `facts` may hold, after `rules` and `meanings` that led to them."""
        for place, (fact, above) in enumerate(facts):
            if STEERING.intersection(heads(fact)):
                rest = (*facts[:place], *facts[place + 1 :])
                yield from self.ways(rest, rules, meanings)
                return
            for head in sorted(BELIEVED.intersection(heads(fact))):
                if reason := of_user(head, self.book):
                    raise Recursive(reason)
            found = _relation(fact, self.makers)
            if found is None:
                continue
            head, args, value = found
            if head in above:
                note = f"(meaning ({head} …) …) beside its declaration states what it says"
                raise Recursive(f"{head} is deduced from {head}: {note}")
            prefix = f"{len(rules) + len(meanings)}."
            if head in self.book.meanings:
                read = [f for f, _ in facts if not STEERING.intersection(heads(f))]
                deduced = _stated(self.book.meanings[head], args, value, read, self.book, prefix)
            elif reason := others(head, self.book):
                raise Recursive(reason)
            else:
                deduced = _deduced(self.makers.of[head], args, value, prefix)
            for name, inner in deduced:
                traced = [(f, (*above, head)) for f in inner]
                more = (*facts[:place], *traced, *facts[place + 1 :])
                used = (*rules, name) if name else rules
                stated = meanings if name else (*meanings, head)
                yield from self.ways(more, used, stated)
            return
        inner = tuple(fact for fact, _ in facts)
        own = frozenset(variables(inner) - self.outer)
        inner = with_floats(with_lists(with_numbers(inner), own))
        inner = arranged(inner, own) if meanings else inner
        yield Unfolded(inner, rules, meanings)


def _with_names(facts: Sequence[Tree]) -> tuple[Tree, ...]:
    """`facts` with a name for each ``_``, which may all be of different values."""
    numbers = count()

    def named(tree: Tree) -> Tree:
        if isinstance(tree, Form):
            return replace(tree, items=tuple(map(named, tree.items)))
        return replace(tree, text=f"any {next(numbers)}") if tree.text == "_" else tree

    return tuple(map(named, facts))


def _stated(
    meaning: Meaning,
    args: Sequence[Tree],
    value: Tree | None,
    facts: Sequence[Tree],
    book: RuleBook,
    prefix: str,
) -> Iterator[tuple[str, Sequence[Tree]]]:
    """The facts of each way in which a meaning says that a row holds, under no rule's name.

    A number in the row may be rounded, and the meaning holds of the number that it is rounded from.
    That has another name, unless the other `facts` only compute with it: they may say what it is.
    """
    names = meaning.named(args, value)
    if names is None:
        raise Recursive(f"a value of {meaning.row.head} is not taken apart as its meaning is")
    numbers: list[Tree] = []
    for k, column in enumerate(_numbers_of(meaning, book)):
        if not _is_number_of_one_row(names.get(column), facts):
            names[column] = Atom(f"{prefix} number {k}", 0)
        numbers.append(form_of(ROUNDED, names[column]))
    for number, way in enumerate(meaning.ways):
        inner = f"{prefix}{number} "
        yield "", [*numbers, *(renamed(f, inner, names) for f in _with_names(way))]


def _numbers_of(meaning: Meaning, book: RuleBook) -> Iterator[str]:
    """The columns of a meaning that are numbers."""
    row = meaning.row
    todo: list[tuple[Tree, str]] = [(form_of(row.head, *row.args, *filter(None, (row.value,))), "")]
    while todo:
        tree, sort = todo.pop(0)
        if isinstance(tree, Form):
            declared = book.declarations[tree.head]
            todo += zip(tree.items[1:], (*declared.sorts, declared.result), strict=False)
        elif sort == "f64":
            yield tree.text


def _is_number_of_one_row(tree: Tree | None, facts: Sequence[Tree]) -> bool:
    """Whether a term is a variable of one row, with which `facts` but compute, or compare it."""
    if not isinstance(tree, Atom) or is_literal(tree.text):
        return False
    forms = [f for fact in facts for f in forms_in(fact) if f.head not in _OF_NUMBERS]
    return sum(isinstance(i, Atom) and i.text == tree.text for f in forms for i in f.items) == 1


def _deduced(
    makers: Sequence[tuple[Direction, Row]], args: Sequence[Tree], value: Tree | None, prefix: str
) -> Iterator[tuple[str, Sequence[Tree]]]:
    """The facts of each rule that deduces a row, by the name of the rule."""
    for number, (maker, row) in enumerate(makers):
        inner = f"{prefix}{number} "
        joined = _joined(maker, row, args, value, inner)
        if joined is not None:
            equations, names = joined
            facts = (renamed(f, inner, names) for f in _with_names(maker.body))
            yield maker.name, [*equations, *facts]


def _relation(fact: Tree, makers: Makers) -> tuple[str, tuple[Tree, ...], Tree | None] | None:
    """A fact of a relation that rules deduce: its name, arguments, and value."""
    if not isinstance(fact, Form):
        return None
    if _is_deduced(fact.head, makers):
        return fact.head, fact.items[1:], None
    if fact.head == "=":
        for one, other in ((1, 2), (2, 1)):
            side = fact.items[one]
            if isinstance(side, Form) and _is_deduced(side.head, makers):
                return side.head, side.items[1:], fact.items[other]
    return None


def _is_deduced(head: str, makers: Makers) -> bool:
    return head in makers.of and head not in KNOWN


def _joined(
    maker: Direction, row: Row, args: Sequence[Tree], value: Tree | None, prefix: str
) -> tuple[list[Tree], dict[str, Tree]] | None:
    """What makes the row that a rule adds a premise: equations, and terms for its variables.

    ``None`` if an equation is false.
    """
    pairs = list(zip(args, row.args, strict=True))
    if value is not None and row.value is not None:
        pairs.append((value, row.value))
    names: dict[str, Tree] = {}
    open_: list[tuple[Tree, Tree]] = []
    for ours, theirs in pairs:
        name = theirs.text if isinstance(theirs, Atom) else ""
        literal = is_literal(name)
        if name and not literal and name not in names and name not in maker.lets:
            names[name] = ours
        elif literal and isinstance(ours, Atom) and is_literal(ours.text):
            if not _is_same(ours.text, name):
                return None
        else:
            open_.append((ours, theirs))
    equations: list[Tree] = []
    for ours, theirs in open_:
        head = BUILT if any(map(_is_made, forms_in(theirs))) else "="
        equations.append(form_of(head, ours, renamed(theirs, prefix, names)))
    for name, term in maker.lets.items():
        equations.append(form_of(BUILT, prefix + name, renamed(term, prefix, names)))
    return equations, names


def _is_made(form: Form) -> bool:
    """Whether a rule that adds this term makes a tensor, which may not be well-typed."""
    return form.head.startswith("R.") or form.head == "unstable-app"


def _is_same(text: str, other: str) -> bool:
    """Whether two literals are of one value, as ``1.0`` and ``1.00`` are, and both zeros."""
    one, two = literal_of(text), literal_of(other)
    return text == other or (one is not None and two is not None and one.value == two.value)


def renamed(tree: Tree, prefix: str, names: Mapping[str, Tree]) -> Tree:
    """`tree` with terms for the variables in `names`, and `prefix` before the others."""
    if isinstance(tree, Atom):
        plain = is_literal(tree.text) or tree.text == "_"
        return tree if plain else names.get(tree.text) or replace(tree, text=prefix + tree.text)
    first, *rest = tree.items
    head = first if isinstance(first, Atom) else renamed(first, prefix, names)
    return replace(tree, items=(head, *(renamed(t, prefix, names) for t in rest)))
