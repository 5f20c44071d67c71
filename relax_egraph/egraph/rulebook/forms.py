"""Syntax trees of rule files: forms and atoms, each with its place in the text."""

import re
from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

from relax_egraph.egraph.functions.function import Function
from relax_egraph.errors import RuleError, Span

RULES = ("rewrite", "birewrite", "rule")
"""The heads of forms that state a rule."""

DECLARATIONS = ("ruleset", "sort", "datatype", "constructor", "function", "relation")
"""The heads of forms that declare a name."""

MEANING = "meaning"
"""The head of the form that states what a relation means."""

RUNS = (
    *("run", "run-schedule", "extract", "multi-extract", "include", "input", "output", "let"),
    *("set", "union", "delete", "subsume", "check", "fail", "panic", "push", "pop", "prove"),
    *("print-function", "print-size", "print-stats", "let-scheduler", "with-ruleset"),
    *("unstable-combined-ruleset", "datatype*"),
)
"""The heads of commands that a rule file must not contain: only the engine runs the e-graph."""


@dataclass(frozen=True, slots=True)
class Atom:
    """A symbol, keyword or literal at offset `start` of its file."""

    text: str
    start: int

    @property
    def end(self) -> int:
        """The offset behind the last character."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Form:
    """A parenthesised list, read from the text of its file between `start` and `end`."""

    items: tuple["Tree", ...]
    start: int
    end: int

    @property
    def head(self) -> str:
        """The symbol in front; empty where there is none."""
        first = self.items[0] if self.items else None
        return first.text if isinstance(first, Atom) else ""

    def __hash__(self) -> int:
        """The hash of its place: quick, and few forms of one place differ."""
        return hash((self.start, self.end, len(self.items), self.head))


Tree: TypeAlias = Atom | Form


@dataclass(frozen=True, slots=True)
class Source:
    """A rule file: its name in messages, its text, and the users' functions that the text calls."""

    name: str
    text: str
    functions: tuple[Function, ...] = ()

    def place(self, offset: int) -> tuple[int, int]:
        """The line and the column of the character at `offset`, from 0."""
        starts = _line_starts(self.text)
        line = bisect_right(starts, offset) - 1
        return line, offset - starts[line]

    def line_start(self, line: int) -> int:
        """The offset of the first character of a line, from 0."""
        return _line_starts(self.text)[line]

    def span(self, offset: int) -> Span:
        """The place of the character at `offset`."""
        line, column = self.place(offset)
        return Span(self.name, line + 1, column + 1)

    def error(self, at: Tree | Span, message: str, note: str = "") -> RuleError:
        """An error at a tree or a place of this file."""
        span = at if isinstance(at, Span) else self.span(at.start)
        return RuleError(span, message, _lines(self.text)[span.line - 1], note)

    def comment_above(self, form: Form) -> tuple[str, ...]:
        """The comment lines that end right above `form`, without their semicolons."""
        lines = _lines(self.text)
        first = last = self.place(form.start)[0]
        while first > 0 and lines[first - 1].startswith(";"):
            first -= 1
        return tuple(line.lstrip(";").strip() for line in lines[first:last])


@lru_cache(4)
def _lines(text: str) -> list[str]:
    return text.split("\n")


@lru_cache(64)
def _line_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in _LINE_END.finditer(text))]


_LINE_END = re.compile(r"\n")


def written(tree: Tree) -> str:
    """`tree` as egglog reads it, on one line."""
    if isinstance(tree, Atom):
        return tree.text
    return f"({' '.join(map(written, tree.items))})"


def substituted(tree: Tree, by: Mapping[str, Tree]) -> Tree:
    """`tree` with other trees in place of the atoms whose texts `by` has."""
    if isinstance(tree, Atom):
        return by.get(tree.text, tree)
    return replace(tree, items=tuple(substituted(item, by) for item in tree.items))


def form_of(*items: Tree | str, at: int = 0) -> Form:
    """A new form of `items` at offset `at`; a text becomes an atom."""
    return Form(tuple(Atom(i, at) if isinstance(i, str) else i for i in items), at, at)


def premises_in(rule: Form) -> Form | None:
    """The list of premises: the value of :when, or the body of a rule."""
    if rule.head == "rule":
        premises = rule.items[1] if len(rule.items) > 1 else None
    else:
        names = [item.text if isinstance(item, Atom) else "" for item in rule.items]
        premises = rule.items[names.index(":when") + 1] if ":when" in names[:-1] else None
    return premises if isinstance(premises, Form) else None


def premises_of(rule: Form) -> tuple[Tree, ...]:
    """The premises of a rule."""
    premises = premises_in(rule)
    return premises.items if premises else ()


def matched_in(rule: Form) -> tuple[tuple[Tree, ...], ...]:
    """The matched side and the premises of a rule, for each of its directions."""
    premises = premises_of(rule)
    if rule.head == "rule":
        return (premises,)
    sides = rule.items[1:3] if rule.head == "birewrite" else rule.items[1:2]
    return tuple((side, *premises) for side in sides)


def placed(tree: Tree, at: int = 0) -> Iterator[tuple[Tree, int, int]]:
    """The trees in `tree`, operands first, each with its start and end in the `written` text."""
    end = at + len(written(tree))
    if isinstance(tree, Form):
        here = at + 1
        for item in tree.items:
            yield from placed(item, here)
            here += len(written(item)) + 1
    yield tree, at, end


def original(tree: Tree, offset: int) -> int:
    """The offset in the file that corresponds to `offset` in the `written` text of `tree`."""
    return max((start, inner.start) for inner, start, _ in placed(tree) if start <= offset)[1]


def atoms(tree: Tree) -> Iterator[Atom]:
    """The atoms in `tree`, in order."""
    if isinstance(tree, Atom):
        yield tree
    else:
        for item in tree.items:
            yield from atoms(item)


def heads(tree: Tree) -> Iterator[str]:
    """The heads of all forms in `tree`, in order."""
    return (form.head for form in forms_in(tree) if form.head)


def variables(trees: Iterable[Tree]) -> set[str]:
    """The names of the variables in `trees`."""
    return {atom.text for tree in trees for atom in symbols(tree)}


def applied(tree: Tree, names: Container[str]) -> Iterator[Form]:
    """The forms in `tree` that apply one of `names`."""
    return (form for form in forms_in(tree) if form.head in names)


def forms_in(tree: Tree) -> Iterator[Form]:
    """The forms in `tree`, in preorder."""
    if isinstance(tree, Form):
        yield tree
        for item in tree.items:
            yield from forms_in(item)


def symbols(tree: Tree) -> list[Atom]:
    """The atoms that are variables: no literals, no wildcards, no heads."""
    if isinstance(tree, Atom):
        return [] if is_literal(tree.text) or tree.text == "_" else [tree]
    first = tree.items[:1] if not tree.head else ()
    return [atom for item in (*first, *tree.items[1:]) for atom in symbols(item)]


@lru_cache(1 << 14)
def sort_of_literal(text: str) -> str | None:
    """The sort of a literal: a number, text or truth value; ``None`` for a variable."""
    return next((sort for sort, pattern in _LITERALS if pattern.fullmatch(text)), None)


_LITERALS = (
    ("i64", re.compile(r"-?\d+")),
    ("f64", re.compile(r"-?(\d+\.\d*([eE][-+]?\d+)?|\d+[eE][-+]?\d+|inf)|NaN")),
    ("String", re.compile(r'".*"', re.DOTALL)),
    ("bool", re.compile(r"true|false")),
)


def is_literal(text: str) -> bool:
    """Whether an atom is a number, a text or a truth value."""
    return sort_of_literal(text) is not None


def is_primitive(head: str) -> bool:
    """Whether `head` is a primitive: it computes a value of its arguments, and matches no table."""
    return bool(_PRIMITIVE.match(head))


_PRIMITIVE = re.compile(
    r"[^a-zA-Z]|(vec|unstable|to|bool|count|ordering|py|set|map|multiset)-|"
    r"(min|max|abs|not|and|or|log|log2|exp|sqrt|pow|neg)$"
)
