"""Patterns of rules as conjunctive queries: applications of names to variables and literals."""

from dataclasses import dataclass, field
from typing import TypeAlias

from relax_egraph.egraph.rulebook.forms import Atom, Form, Tree, sort_of_literal, written
from relax_egraph.egraph.rulebook.rule import ROOT, Direction


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, text or truth value in a rule."""

    value: int | float | str | bool


Arg: TypeAlias = str | Literal
"""A variable by name, or a literal."""


@dataclass(frozen=True, slots=True)
class Apply:
    """``result = (head args..)``; a relation or comparison has no result.

    `form` is its text in the rule.  An application that is `built` is part of the right side and is
    not matched.
    """

    head: str
    args: tuple[Arg, ...]
    result: Arg | None
    form: Form = field(compare=False)
    built: bool = False

    @property
    def text(self) -> str:
        """The text in the rule."""
        return written(self.form)


@dataclass(slots=True)
class Query:
    """A conjunction of applications; `same` are pairs of equal arguments."""

    applies: list[Apply] = field(default_factory=list[Apply])
    same: list[tuple[Arg, Arg]] = field(default_factory=list[tuple[Arg, Arg]])
    fresh: int = 0

    def match(self, direction: Direction, prefix: str = "") -> None:
        """Add the pattern of `direction`, with `prefix` before its variables."""
        if direction.left is not None:
            self.term(direction.left, prefix, prefix + ROOT)
        for premise in direction.premises:
            self.fact(premise, prefix)

    def term(self, tree: Tree, prefix: str, result: Arg | None = None, built: bool = False) -> Arg:
        """Add the applications in `tree`, with `prefix` before variables; return its argument."""
        if isinstance(tree, Atom):
            literal = literal_of(tree.text)
            if literal is not None:
                return literal
            return self.variable() if tree.text == "_" else prefix + tree.text
        whole = result or self.variable()
        args = tuple(self.term(item, prefix, None, built) for item in tree.items[1:])
        self.applies.append(Apply(tree.head, args, whole, tree, built))
        return whole

    def fact(self, tree: Tree, prefix: str) -> None:
        """Add a premise, with `prefix` before its variables."""
        if not isinstance(tree, Form):
            return
        if tree.head == "=":
            first, *others = (self.term(item, prefix) for item in tree.items[1:])
            self.same += [(first, other) for other in others]
            return
        if tree.head.startswith(("R.", "K.")):
            self.term(tree, prefix)
            return
        args = tuple(self.term(item, prefix) for item in tree.items[1:])
        self.applies.append(Apply(tree.head, args, None, tree))

    def variable(self) -> str:
        """A fresh variable; no variable of a rule has a space in its name."""
        self.fresh += 1
        return f"_ {self.fresh}"


def spelled(variable: str) -> str:
    """What readers see of a variable, without the rule that it is from."""
    return variable.rpartition(": ")[2].replace(" ", "")


def literal_of(text: str) -> Literal | None:
    """The literal with this text; ``None`` for a variable."""
    match sort_of_literal(text):
        case "String":
            return Literal(text[1:-1])
        case "bool":
            return Literal(text == "true")
        case "i64":
            return Literal(int(text))
        case "f64":
            return Literal(float(text))
        case _:
            return None
