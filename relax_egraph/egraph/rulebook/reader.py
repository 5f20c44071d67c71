"""The parser of rule files, form by form; it goes on after a syntax error."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from relax_egraph.egraph.rulebook.forms import (
    DECLARATIONS,
    MEANING,
    RULES,
    Atom,
    Form,
    Source,
    Tree,
)
from relax_egraph.errors import RuleError

_TOKEN = re.compile(
    r"""(?P<space>\s+|;[^\n]*)|(?P<open>\()|(?P<close>\))
    |(?P<string>"(?:[^"\\]++|\\.)*+")|(?P<atom>[^\s()";]+)|(?P<stray>")""",
    re.VERBOSE | re.DOTALL,
)
_OUTSIDE = re.compile(r"(?:;[^\n]*+|[^(;])*+")
_INDENTED = re.compile(r"^[^\S\n]*\(", re.MULTILINE)
_OVER_FORMS = re.compile(r"\n\s*\(")
_COMMAND = re.compile(rf"\((?:{'|'.join((*RULES, *DECLARATIONS, MEANING))})(?![^\s()])")

MOST = 10_000
"""The most forms of one file: egglog takes a millisecond and up to 20 kB for each."""

LONGEST = 20_000
"""The most characters of one form: egglog takes memory quadratic in its length."""

DEEPEST = 200
"""The deepest nesting of forms: walks over them are recursive, here and in egglog."""

_SHOWN = 40
"""Characters of a token that a message quotes."""

_NO_FORM = "a rule is a form, (rewrite …); a name of a file ends in .egg, or the file is there"


@dataclass(frozen=True, slots=True)
class Unread:
    """A text from `start` to `end` that is no form, and its error."""

    error: RuleError
    start: int
    end: int


def read(source: Source) -> Iterator[Form]:
    """The top-level forms of `source`; raises `RuleError` at the first text that is no form."""
    for item in read_all(source):
        if isinstance(item, Unread):
            raise item.error
        yield item


def read_all(source: Source) -> Iterator[Form | Unread]:
    """The top-level forms of `source`, and the texts between them that are no forms.

    A form that is never closed ends where the next form starts.
    """
    count, at = 0, 0
    while item := _next(source, at):
        if isinstance(item, Form) and count == MOST:
            error = source.error(item, f"a rule file has at most {MOST} forms")
            yield Unread(error, item.start, len(source.text))
            return
        yield item
        count, at = count + isinstance(item, Form), item.end


def tokens(text: str) -> Iterator[str]:
    """All of `text`, cut into parentheses, atoms, comments and spaces."""
    return (match[0] for match in _TOKEN.finditer(text))


def is_start(source: Source, start: int, before: int) -> bool:
    """Whether the text at `start` looks like a new form after the form at `before`.

    A new form is the first of its line, and not further to the right.
    """
    if source.text[start] != "(":
        return False
    (line, column), (above, most) = source.place(start), source.place(before)
    blank = not source.text[start - column : start].strip()
    return line > above and column <= most and blank


def is_command(source: Source, start: int) -> bool:
    """Whether the form at `start` is a rule or a declaration."""
    return _COMMAND.match(source.text, start) is not None


def _next(source: Source, at: int) -> Form | Unread | None:
    """The next form, or text that is no form, from `at` on; ``None`` at the end of the text."""
    tokens = (m for m in _TOKEN.finditer(source.text, at) if m.lastgroup != "space")
    first = next(tokens, None)
    if first is None:
        return None
    if first.lastgroup == "open":
        return _form(source, first.start())
    outside = _OUTSIDE.match(source.text, first.end())
    assert outside  # it matches the empty text
    return Unread(_stray(source, first), first.start(), outside.end())


def _stray(source: Source, token: re.Match[str]) -> RuleError:
    """The error of a token outside of any form."""
    span = source.span(token.start())
    if token.lastgroup == "close":
        return source.error(span, "unexpected ')'", "every parenthesis before it is closed already")
    if token.lastgroup == "stray":
        return source.error(span, "this string is never closed")
    text = token[0] if len(token[0]) <= _SHOWN else f"{token[0][:_SHOWN]}…"
    note = "" if "(" in source.text else _NO_FORM
    return source.error(span, f"unexpected {text}: it stands outside of any form", note)


def _form(source: Source, begin: int) -> Form | Unread:
    """The form at `begin`, or the text there with its syntax error."""
    stack: list[tuple[int, list[Tree]]] = []
    seam: tuple[int, int] | None = None
    """The unclosed form, and the offset where the next form seems to start."""

    def refused(at: int, message: str, note: str = "") -> Unread:
        error = source.error(source.span(at), message, note)
        return Unread(error, begin, _start_behind(source, at, begin))

    is_first = False  # of its line, so far
    for match in _TOKEN.finditer(source.text, begin):
        token, start, kind = match[0], match.start(), match.lastgroup
        if kind == "space":
            is_first |= "\n" in token
            continue
        if kind == "open" and is_first and is_start(source, start, begin):
            seam = seam or (stack[-1][0], start)
            if is_command(source, start):
                break
        is_first = False
        if match.end() - begin > LONGEST:
            if seam:
                break
            return refused(begin, f"this form has more than {LONGEST} characters", _SPLIT)
        if kind == "close":
            opened, items = stack.pop()
            form = Form(tuple(items), opened, match.end())
            if not stack:
                return form
            stack[-1][1].append(form)
        elif kind == "open":
            if len(stack) == DEEPEST:
                return refused(start, f"forms are nested more than {DEEPEST} deep")
            stack.append((start, []))
        elif kind == "stray" or _OVER_FORMS.search(token):
            return refused(start, "this string is never closed")
        else:
            stack[-1][1].append(Atom(token, start))
    opened, end = seam or (stack[-1][0], len(source.text))
    return Unread(source.error(source.span(opened), "this '(' is never closed"), begin, end)


_SPLIT = "split it into several"


def _start_behind(source: Source, at: int, begin: int) -> int:
    """The start of the first form after `at` that is not part of the form at `begin`."""
    starts = (match.end() - 1 for match in _INDENTED.finditer(source.text, at + 1))
    return next((k for k in starts if is_start(source, k, begin)), len(source.text))
