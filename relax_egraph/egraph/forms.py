"""The text of a rule file as a tree of forms, each with its place."""

import re
from dataclasses import dataclass
from typing import TypeAlias

from relax_egraph.errors import RuleError, Span

_TOKEN = re.compile(
    r"""(?P<space>[^\S\n]+|;[^\n]*)|(?P<newline>\n)|(?P<open>\()|(?P<close>\))
    |(?P<string>"(?:[^"\\]|\\.)*")|(?P<atom>[^\s()";]+)|(?P<stray>")""",
    re.VERBOSE | re.DOTALL,
)


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

    def error(self, span: Span, message: str, note: str = "") -> RuleError:
        """The error that points at `span` of this file."""
        lines = self.text.split("\n")
        return RuleError(span, message, lines[span.line - 1], note)

    def comment_above(self, form: Form) -> tuple[str, ...]:
        """The comment lines that end right above `form`, without their semicolons."""
        lines = self.text.split("\n")
        first = last = form.span.line - 1
        while first > 0 and lines[first - 1].startswith(";"):
            first -= 1
        return tuple(line.lstrip(";").strip() for line in lines[first:last])


def read(source: Source) -> tuple[Form, ...]:
    """Split `source` into its top-level forms; raises `RuleError` where parentheses do not match.

    Of a form that is never closed, the place is that of its own parenthesis, found where the
    next form begins in the first column.
    """
    forms: list[Form] = []
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
                stack.append((span, start, []))
            case "close":
                if not stack:
                    note = "every parenthesis before it is closed already"
                    raise source.error(span, "unexpected ')'", note)
                place, begin, items = stack.pop()
                form = Form(tuple(items), place, begin, match.end())
                if stack:
                    stack[-1][2].append(form)
                else:
                    forms.append(form)
                    suspects = []
            case "string" | "atom":
                if not stack:
                    raise source.error(span, f"unexpected {token}: it stands outside of any form")
                stack[-1][2].append(Atom(token, span, start))
                line += token.count("\n")
                line_start = start + token.rfind("\n") + 1 if "\n" in token else line_start
            case "stray":
                raise source.error(span, "this string is never closed")
            case _:
                pass
    if stack:
        unclosed = suspects[-1] if suspects else stack[-1][0]
        raise source.error(unclosed, "this '(' is never closed")
    return tuple(forms)
