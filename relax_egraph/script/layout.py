"""Lays out lines of text as black does: brackets of long lines are opened."""

import keyword
import re
from collections.abc import Iterable, Sequence

from relax_egraph.ir.names import unused

WIDTH = 100
"""The most columns of a line, except for a single longer name."""

_STEP = "    "
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|\w+|[()\[\]{},]')
"""A string, a word (after which a bracket takes an index), or a punctuation mark of the layout."""


def call_lines(indent: str, head: str, args: Sequence[str], tail: str = ")") -> list[str]:
    """The lines of ``head(args)``: one line, or the arguments on one line, or a line for each.

    `head` ends with the opening bracket, `tail` begins with the closing one.
    """
    inside = ", ".join(args)
    whole = f"{indent}{head}{inside}{tail}"
    if len(whole) <= WIDTH or not args:
        return [whole]
    if len(indent) + len(_STEP) + len(inside) <= WIDTH:
        body = [f"{indent}{_STEP}{inside}"]
    else:
        body = [line for a in args for line in wrapped(indent + _STEP, f"{a},")]
    return [*wrapped(indent, head), *body, *wrapped(indent, tail)]


def def_lines(indent: str, head: str, params: Sequence[str], tail: str) -> list[str]:
    """The head of a function: on one line, or with a line for each parameter."""
    whole = f"{indent}{head}{', '.join(params)}{tail}"
    if len(whole) <= WIDTH or not params:
        return wrapped(indent, whole[len(indent) :])
    body = [line for p in params for line in wrapped(indent + _STEP, f"{p},")]
    return [f"{indent}{head}", *body, *wrapped(indent, tail)]


def wrapped(indent: str, text: str) -> list[str]:
    """The lines of `text`: one if it fits, else with its longest outermost list opened.

    A list is the arguments of a call, or has a comma, so that a trailing comma changes nothing.
    """
    if len(indent) + len(text) <= WIDTH:
        return [indent + text]
    brackets = _longest_list(text)
    if brackets is None:
        return [indent + text]
    start, commas, end = brackets
    starts = [start + 1, *(c + 1 for c in commas)]
    items = [text[a:b].strip() for a, b in zip(starts, [*commas, end], strict=True)]
    items = [i for i in items if i]
    if commas and len(items) == 1:  # a tuple of one, whose comma stays
        head, tail = wrapped(indent, text[: start + 1]), wrapped(indent, text[end:])
        return [*head, *wrapped(indent + _STEP, f"{items[0]},"), *tail]
    return call_lines(indent, text[: start + 1], items, text[end:])


def _longest_list(text: str) -> tuple[int, list[int], int] | None:
    """The opening bracket, commas and closing bracket of the longest outermost list."""
    brackets = None
    stack: list[int] = []
    commas: list[int] = []
    touches, longest, before = False, 1, -1
    for token in _TOKEN.finditer(text):
        mark, place = token.group(), token.start()
        if mark in "([{":
            if not stack:
                commas, touches = [], before == place
            stack.append(place)
        elif mark in ")]}":
            if not stack:
                continue
            start = stack.pop()
            is_list = bool(commas) if not touches else mark == ")"
            if not stack and is_list and place - start > longest:
                brackets, longest = (start, commas, place), place - start
        elif mark == "," and len(stack) == 1:
            commas.append(place)
        before = token.end()
    return brackets


class Names:
    """Allocates unique identifiers."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken = {"R", "T", "I", "cls", "Module", "metadata", *reserved}
        self._numbers: dict[str, int] = {}

    def take(self, wanted: str) -> str:
        """`wanted` as an identifier, with a number if it is in use."""
        base = re.sub(r"\W", "_", wanted)
        if not base or base[0].isdigit() or keyword.iskeyword(base):
            base = f"_{base}"
        return unused(base, self._taken, self._numbers)

    def free(self, name: str) -> None:
        """Make `name` available again: its scope is closed."""
        self._taken.discard(name)
        self._numbers.clear()
