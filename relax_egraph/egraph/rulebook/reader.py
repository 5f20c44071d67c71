"""The text of a rule file, read form by form; reading goes on behind what is no form."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from relax_egraph.egraph.rulebook.forms import DECLARATIONS, RULES, Atom, Form, Source, Tree
from relax_egraph.errors import RuleError

_TOKEN = re.compile(
    r"""(?P<space>\s+|;[^\n]*)|(?P<open>\()|(?P<close>\))
    |(?P<string>"(?:[^"\\]++|\\.)*+")|(?P<atom>[^\s()";]+)|(?P<stray>")""",
    re.VERBOSE | re.DOTALL,
)
_OUTSIDE = re.compile(r"(?:;[^\n]*+|[^(;])*+")
_INDENTED = re.compile(r"^[^\S\n]*\(", re.MULTILINE)
_OVER_FORMS = re.compile(r"\n\s*\(")
_COMMAND = re.compile(rf"\((?:{'|'.join((*RULES, *DECLARATIONS))})(?![^\s()])")

MOST = 10_000
"""Forms that one file may have: egglog takes a millisecond for each, and up to 20 kB."""

LONGEST = 20_000
"""Characters that one form may have: egglog takes memory quadratic in its length."""

DEEPEST = 200
"""How deep forms may be nested: they are walked by recursion, here and in egglog."""

_SHOWN = 40
"""Characters of a token that a message quotes."""

_NO_FORM = "a rule is a form, (rewrite …); a name of a file ends in .egg, or the file is there"


@dataclass(frozen=True, slots=True)
class Unread:
    """The text from `start` to `end`, which is no form, and why."""

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


def is_start(source: Source, start: int, before: int) -> bool:
    """Whether what is at `start` looks like a form of its own behind the one at `before`.

    It is the first of its line, and no further to the right.
    """
    if source.text[start] != "(":
        return False
    (line, column), (above, most) = source.place(start), source.place(before)
    blank = not source.text[start - column : start].strip()
    return line > above and column <= most and blank


def is_command(source: Source, start: int) -> bool:
    """Whether what is at `start` is a form that states a rule or declares a name."""
    return _COMMAND.match(source.text, start) is not None


def _next(source: Source, at: int) -> Form | Unread | None:
    """What comes next in the text from `at`; ``None`` if nothing does."""
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
    """The error of a token that stands outside of any form."""
    span = source.span(token.start())
    if token.lastgroup == "close":
        return source.error(span, "unexpected ')'", "every parenthesis before it is closed already")
    if token.lastgroup == "stray":
        return source.error(span, "this string is never closed")
    text = token[0] if len(token[0]) <= _SHOWN else f"{token[0][:_SHOWN]}…"
    note = "" if "(" in source.text else _NO_FORM
    return source.error(span, f"unexpected {text}: it stands outside of any form", note)


def _form(source: Source, begin: int) -> Form | Unread:
    """The form at `begin`, or why there is none."""
    stack: list[tuple[int, list[Tree]]] = []
    seam: tuple[int, int] | None = None
    """What is open where the next form seems to start, and where that is."""

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
    """Where behind `at` the next form starts, of which the one at `begin` is no part."""
    found = (match.end() - 1 for match in _INDENTED.finditer(source.text, at + 1))
    return next((k for k in found if is_start(source, k, begin)), len(source.text))
