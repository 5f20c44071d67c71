"""The entries of a rule book: rules and other statements, each parsed once.

A rule has one direction, a ``birewrite`` two.  A direction has the premises, sides and actions.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias, cast

from relax_egraph.egraph.rulebook.forms import (
    Atom,
    Form,
    Tree,
    applied,
    form_of,
    heads,
    premises_of,
    written,
)
from relax_egraph.egraph.rulebook.guards import expand
from relax_egraph.errors import Span

RuleKind: TypeAlias = Literal["rewrite", "birewrite", "rule"]
FloatClass: TypeAlias = Literal["exact", "reassociates", "fast", "bounded", "unstated"]

_OF_ENGINE = Span("engine", 1, 1)
"""The place of generated rules."""

ROOT = "left-side"
"""The variable that stands for the left side of a rewrite."""


@dataclass(frozen=True, eq=False)
class Rule:
    """A rule of the book.

    `law` is the comment above it, `float_class` its effect on rounding (``rules/README.md``),
    `form` its tree without ruleset and name.  Reports name the directions of a birewrite ``name=>``
    and ``name<=``.
    """

    name: str
    ruleset: str
    form: Form
    span: Span = _OF_ENGINE
    law: str = ""
    float_class: FloatClass = "exact"

    @property
    def kind(self) -> RuleKind:
        """The head of the form."""
        return cast(RuleKind, self.form.head)

    @property
    def reported(self) -> tuple[str, ...]:
        """The names under which reports count its matches."""
        return (f"{self.name}=>", f"{self.name}<=") if self.kind == "birewrite" else (self.name,)

    @cached_property
    def directions(self) -> tuple["Direction", ...]:
        """The directions in which it is applied: two for a birewrite, else one."""
        premises, (first, second) = premises_of(self.form), self.form.items[1:3]
        if self.kind == "rule":
            actions = second.items if isinstance(second, Form) else ()
            done = tuple(action for action in actions if isinstance(action, Form))
            return (Direction(self, self.name, premises, actions=done),)
        forward = Direction(self, self.reported[0], premises, first, second)
        if self.kind == "rewrite":
            return (forward,)
        return forward, replace(forward, name=self.reported[1], left=second, right=first)

    @property
    def text(self) -> str:
        """The rule as egglog reads it."""
        return self.text_in(self.ruleset)

    def text_in(self, ruleset: str) -> str:
        """The rule as egglog reads it, in `ruleset` instead of its own."""
        return f'{self._asking[:-1]} :ruleset {ruleset} :name "{self.name}")'

    @cached_property
    def _asking(self) -> str:
        return written(expand(self.form))


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """A row of the table `head`, which a premise reads or an action adds.

    `value` is ``None`` for a relation.
    """

    head: str
    args: tuple[Tree, ...]
    value: Tree | None = None


@dataclass(frozen=True, eq=False)
class Direction:
    """One direction of a rule: its premises, sides and actions.

    `name` is its name in reports.  `left` and `right` are the sides of a rewrite, `actions` the
    head of a rule.
    """

    rule: Rule
    name: str
    premises: tuple[Tree, ...]
    left: Tree | None = None
    right: Tree | None = None
    actions: tuple[Form, ...] = ()

    @cached_property
    def body(self) -> tuple[Tree, ...]:
        """The premises, and the left side as a premise."""
        if self.left is None:
            return self.premises
        return (form_of("=", ROOT, self.left), *self.premises)

    @cached_property
    def head(self) -> tuple[Form, ...]:
        """The actions, or the union of both sides as an action."""
        return self.actions if self.right is None else (form_of("union", ROOT, self.right),)

    @property
    def matched(self) -> tuple[Tree, ...]:
        """The left side and the premises."""
        return self.premises if self.left is None else (self.left, *self.premises)

    @property
    def reads(self) -> Iterator[str]:
        """The heads of all forms in the premises and the left side, in order."""
        trees = self.premises if self.left is None else (*self.premises, self.left)
        return (head for tree in trees for head in heads(tree))

    @property
    def lets(self) -> dict[str, Tree]:
        """The names that actions give to terms."""
        return {written(a.items[1]): a.items[2] for a in self.actions if a.head == "let"}

    @property
    def unions(self) -> tuple[tuple[Tree, Tree], ...]:
        """The terms that a match equates."""
        return tuple((a.items[1], a.items[2]) for a in self.head if a.head == "union")

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The rows of relations and functions that a match adds."""
        return tuple(row for action in self.actions if (row := row_of(action)))

    @cached_property
    def within(self) -> frozenset[str]:
        """The heads of terms within actions, or of functions: a match adds rows of these, too."""
        made = (head for action in self.head for tree in _parts(action) for head in heads(tree))
        functions = (
            f for tree in (*self.body, *self.head) for f in applied(tree, ("unstable-fn",))
        )
        return frozenset((*made, *(written(f.items[1]).strip('"') for f in functions)))

    @cached_property
    def unites(self) -> bool:
        """Whether it equates values; other directions deduce facts only."""
        return bool(self.unions) or any(row.head == "const-scalar" for row in self.rows)


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """A form of a rule book that is no rule: a declaration, or a command that runs once."""

    form: Form

    @property
    def ruleset(self) -> str | None:
        """The ruleset that it declares; ``None`` if it declares none."""
        return written(self.form.items[1]) if self.form.head == "ruleset" else None

    @property
    def text(self) -> str:
        """The statement as egglog reads it."""
        return written(self.form)


def _parts(action: Form) -> tuple[Tree, ...]:
    """The terms that an action makes beside its own row."""
    match action:
        case Form(items=(Atom(text="set"), Form() as row, value)):
            return (*row.items[1:], value)
        case Form(head="delete" | "subsume"):
            return ()
        case _:
            return action.items[1:]


Entry: TypeAlias = Rule | Statement


def row_of(tree: Tree) -> Row | None:
    """The row that a premise reads or an action adds; ``None`` if there is none."""
    match tree:
        case Form(items=(Atom(text="="), value, Form() as row)):
            return Row(row.head, row.items[1:], value)
        case Form(items=(Atom(text="=" | "set"), Form() as row, value)):
            return Row(row.head, row.items[1:], value)
        case Form(head="let" | "union" | "delete" | "subsume") | Atom():
            return None
        case Form(head=head, items=items):
            return None if head.startswith(("R.", "K.")) else Row(head, items[1:])


def deducers(
    directions: Iterable[Direction], *, besides: Container[str]
) -> dict[str, list[tuple[Direction, Row]]]:
    """By relation or function the directions that add rows to it, except to those `besides`."""
    by_name: dict[str, list[tuple[Direction, Row]]] = defaultdict(list)
    for direction in directions:
        for row in direction.rows:
            if row.head not in besides:
                by_name[row.head].append((direction, row))
    return dict(by_name)
