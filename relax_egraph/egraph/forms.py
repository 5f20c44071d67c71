"""The text of a rule file as a tree of forms, each with its place."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from relax_egraph.errors import RuleError, Span

_TOKEN = re.compile(
    r"""(?P<space>[^\S\n]+|;[^\n]*)|(?P<newline>\n)|(?P<open>\()|(?P<close>\))
    |(?P<string>"(?:[^"\\]++|\\.)*+")|(?P<atom>[^\s()";]+)|(?P<stray>")""",
    re.VERBOSE | re.DOTALL,
)

MOST = 10_000
"""Forms that one file may have: egglog takes a millisecond for each, and up to 20 kB."""

LONGEST = 20_000
"""Characters that one form may have: egglog takes memory quadratic in its length."""

DEEPEST = 200
"""How deep forms may be nested: they are walked by recursion, here and in egglog."""

RULES = ("rewrite", "birewrite", "rule")
"""The heads of forms that state a rule."""

_SHOWN = 40
"""Characters of a token that a message quotes."""

_NO_FORM = "a rule is a form, (rewrite …); a name of a file ends in .egg, or the file is there"


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
    """A rule file: its name as messages show it, and its text."""

    name: str
    text: str

    def span(self, offset: int) -> Span:
        """The place of the character at `offset`."""
        before = self.text[:offset]
        return Span(self.name, before.count("\n") + 1, offset - before.rfind("\n"))

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


def read(source: Source) -> Iterator[Form]:
    """The top-level forms of `source`; raises `RuleError` where parentheses do not match.

    Of a form that is never closed, the place is that of its own parenthesis, found where the
    next form begins in the first column.
    """
    count = 0
    stack: list[tuple[Span, int, list[Tree]]] = []
    suspects: list[Span] = []
    line, line_start = 1, 0
    for match in _TOKEN.finditer(source.text):
        token, start = match[0], match.start()
        span = Span(source.name, line, start - line_start + 1)
        match match.lastgroup:
            case "newline":
                line, line_start = line + 1, start + 1
            case "open":
                if stack and span.column == 1 and not suspects:
                    suspects = [place for place, _, _ in stack]
                if len(stack) == DEEPEST:
                    raise source.error(span, f"forms are nested more than {DEEPEST} deep")
                stack.append((span, start, []))
            case "close":
                if not stack:
                    note = "every parenthesis before it is closed already"
                    raise source.error(span, "unexpected ')'", note)
                place, begin, items = stack.pop()
                form = Form(tuple(items), place, begin, match.end())
                if stack:
                    stack[-1][2].append(form)
                elif count == MOST:
                    raise source.error(place, f"a rule file has at most {MOST} forms")
                else:
                    yield form
                    count, suspects = count + 1, []
            case "string" | "atom":
                if not stack:
                    shown = token if len(token) <= _SHOWN else f"{token[:_SHOWN]}…"
                    message = f"unexpected {shown}: it stands outside of any form"
                    raise source.error(span, message, "" if "(" in source.text else _NO_FORM)
                stack[-1][2].append(Atom(token, span, start))
                line += token.count("\n")
                line_start = start + token.rfind("\n") + 1 if "\n" in token else line_start
            case "stray":
                raise source.error(span, "this string is never closed")
            case _:
                pass
        if stack and match.end() - stack[0][1] > LONGEST and not suspects:
            note = "split it into several"
            raise source.error(stack[0][0], f"this form has more than {LONGEST} characters", note)
    if stack:
        unclosed = suspects[-1] if suspects else stack[-1][0]
        raise source.error(unclosed, "this '(' is never closed")


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
