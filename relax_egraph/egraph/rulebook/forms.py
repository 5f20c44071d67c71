"""The text of a rule file as a tree of forms, each with its place."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from relax_egraph.egraph.functions.function import Function
from relax_egraph.errors import RuleError, Span

RULES = ("rewrite", "birewrite", "rule")
"""The heads of forms that state a rule."""

DECLARATIONS = ("ruleset", "sort", "datatype", "constructor", "function", "relation")
"""The heads of forms that declare a name."""

RUNS = (
    *("run", "run-schedule", "extract", "multi-extract", "include", "input", "output", "let"),
    *("set", "union", "delete", "subsume", "check", "fail", "panic", "push", "pop", "prove"),
    *("print-function", "print-size", "print-stats", "let-scheduler", "with-ruleset"),
    *("unstable-combined-ruleset", "datatype*"),
)
"""The heads of forms that a rule file does not have: the engine runs it."""


@dataclass(frozen=True, slots=True)
class Atom:
    """A symbol, keyword or literal, as it is written."""

    text: str
    span: Span
    start: int

    @property
    def end(self) -> int:
        """The offset behind the last character."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Form:
    """A parenthesised list; the text of its file from `start` to `end` is what it was read from."""

    items: tuple["Tree", ...]
    span: Span
    start: int
    end: int

    @property
    def head(self) -> str:
        """The symbol in front; empty where there is none."""
        first = self.items[0] if self.items else None
        return first.text if isinstance(first, Atom) else ""


Tree: TypeAlias = Atom | Form


@dataclass(frozen=True, slots=True)
class Source:
    """A rule file: its name as messages show it, and its text.

    `functions` are those of users that the text calls.
    """

    name: str
    text: str
    functions: tuple[Function, ...] = ()

    def place(self, offset: int) -> tuple[int, int]:
        """The line and the column of the character at `offset`, from 0."""
        starts = _line_starts(self.text)
        line = bisect_right(starts, offset) - 1
        return line, offset - starts[line]

    def span(self, offset: int) -> Span:
        """The place of the character at `offset`."""
        line, column = self.place(offset)
        return Span(self.name, line + 1, column + 1)

    def error(self, span: Span, message: str, note: str = "") -> RuleError:
        """The error that points at `span` of this file."""
        return RuleError(span, message, _lines(self.text)[span.line - 1], note)

    def comment_above(self, form: Form) -> tuple[str, ...]:
        """The comment lines that end right above `form`, without their semicolons."""
        lines = _lines(self.text)
        first = last = form.span.line - 1
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


def heads(tree: Tree) -> Iterator[str]:
    """What is applied in `tree`, in order."""
    if isinstance(tree, Form):
        if tree.head:
            yield tree.head
        for item in tree.items:
            yield from heads(item)


def is_literal(text: str) -> bool:
    """Whether an atom is a number, a text or a truth value, and no variable."""
    return text[0] in '"-.0123456789' or text in ("true", "false", "NaN", "inf")
