"""The names in a rule file: where each is declared and used, as far as the text reads."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from relax_egraph.egraph.rulebook.forms import (
    DECLARATIONS,
    MEANING,
    RULES,
    Atom,
    Form,
    Source,
    Tree,
    is_literal,
    is_primitive,
)
from relax_egraph.egraph.rulebook.reader import Unread, read_all

Kind: TypeAlias = Literal["table", "sort", "ruleset", "rule", "variable"]
"""The kinds of names, each a space of its own; a table is an operator, relation or function."""


@dataclass(frozen=True, slots=True)
class Name:
    """An occurrence of a name, between two offsets; `form` is the top-level form that has it.

    `within` is the form that it is an argument or the head of, at position `at`.
    """

    text: str
    kind: Kind
    start: int
    end: int
    form: Form
    within: Form
    at: int
    declares: bool = False

    def same(self, other: "Name") -> bool:
        """Whether both name one thing: a variable is known in its form only."""
        alike = (self.text, self.kind) == (other.text, other.kind)
        return alike and (self.kind != "variable" or self.form is other.form)


@dataclass(frozen=True, slots=True)
class Names:
    """The forms of `source` that read, and the names in them, in order."""

    source: Source
    forms: tuple[Form, ...]
    every: tuple[Name, ...]

    def at(self, offset: int) -> Name | None:
        """The name that the character at `offset` is in, or ends before it."""
        touching = [name for name in self.every if name.start <= offset <= name.end]
        return touching[-1] if touching else None

    def declared(self) -> Iterator[Name]:
        """The declarations: of tables, sorts and rulesets, and the rules."""
        return (name for name in self.every if name.declares and name.kind != "variable")

    def of(self, name: Name) -> Iterator[Name]:
        """The occurrences of what `name` names."""
        return (other for other in self.every if other.same(name))


def names_in(source: Source) -> Names:
    """The names in `source`; a form that does not read has none."""
    forms = tuple(form for form in read_all(source) if not isinstance(form, Unread))
    found = (name for form in forms for name in _names(form))
    return Names(source, forms, tuple(sorted(found, key=lambda name: name.start)))


def _names(form: Form) -> Iterator[Name]:
    items = form.items[1:]
    if form.head in RULES:
        yield from _of_rule(form)
    elif form.head in DECLARATIONS and items and isinstance(items[0], Atom):
        yield from _of_declaration(form, items[0], items[1:])
    elif form.head == MEANING:
        for item in items:
            yield from _in_term(form, item)


def _of_rule(form: Form) -> Iterator[Name]:
    """The names of a rule: its own, its ruleset, and those in its terms."""
    before = ""
    for k, item in enumerate(form.items[1:], 1):
        if isinstance(item, Form):
            yield from _in_term(form, item)
        elif before == ":ruleset":
            yield _name(item, "ruleset", form, form, k)
        elif before == ":name":
            yield _name(item, "rule", form, form, k, declares=True)
        elif not item.text.startswith(":") and not is_literal(item.text):
            yield _name(item, "variable", form, form, k)
        before = item.text if isinstance(item, Atom) else ""


def _of_declaration(form: Form, name: Atom, rest: Sequence[Tree]) -> Iterator[Name]:
    kind: Kind = "table"
    if form.head in ("ruleset", "sort", "datatype"):
        kind = "ruleset" if form.head == "ruleset" else "sort"
    yield _name(name, kind, form, form, 1, declares=True)
    if form.head == "datatype":
        for variant in rest:
            if isinstance(variant, Form) and isinstance(first := variant.items[0], Atom):
                yield _name(first, "table", form, variant, 0, declares=True)
                yield from _sorts(form, variant.items[1:])
    elif form.head != "ruleset":
        sorts = [part.items if isinstance(part, Form) else (part,) for part in rest[:2]]
        yield from (name for part in sorts for name in _sorts(form, part))


def _sorts(form: Form, items: Sequence[Tree]) -> Iterator[Name]:
    for k, item in enumerate(items, 1):
        if isinstance(item, Atom) and not item.text.startswith(":"):
            yield _name(item, "sort", form, form, k)


def _in_term(form: Form, tree: Tree) -> Iterator[Name]:
    """The tables and variables in a term, a fact or an action of a rule."""
    if isinstance(tree, Atom):
        return
    for k, item in enumerate(tree.items):
        if isinstance(item, Form):
            yield from _in_term(form, item)
        elif k == 0 and tree.head:
            if not is_primitive(tree.head) and tree.head not in _ACTIONS:
                yield _name(item, "table", form, tree, 0)
        elif tree.head == "unstable-fn" and item.text.startswith('"'):
            yield _name(item, "table", form, tree, k)
        elif item.text != "_" and not item.text.startswith(":") and not is_literal(item.text):
            declares = tree.head == "let" and k == 1
            yield _name(item, "variable", form, tree, k, declares=declares)


_ACTIONS = ("let", "set", "union", "delete", "subsume", "panic")


def _name(
    atom: Atom, kind: Kind, form: Form, within: Form, at: int, *, declares: bool = False
) -> Name:
    quoted = len(atom.text) > 1 and atom.text[0] == atom.text[-1] == '"'
    text = atom.text[1:-1] if quoted else atom.text
    start = atom.start + quoted
    return Name(text, kind, start, start + len(text), form, within, at, declares)
