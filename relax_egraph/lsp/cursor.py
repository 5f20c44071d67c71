"""Where in a form an offset is, also in a form that is not closed yet."""

import re
from dataclasses import dataclass

from relax_egraph.egraph.rulebook.forms import Source, sort_of_literal
from relax_egraph.egraph.rulebook.reader import tokens

_START = re.compile(r"^\(", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Opened:
    """A form that is open at a place: its head, and how many items it has behind the head.

    It has -1 items where the head is missing.
    """

    head: str = ""
    items: int = -1

    def with_item(self, text: str) -> "Opened":
        """The form with one more item."""
        return Opened(text if self.items < 0 else self.head, self.items + 1)


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in a text: the forms around it, outermost first, and the `word` that ends there.

    `before` is the last item before the word, if that is an atom, such as ``:ruleset``; `variables`
    are those of the top-level form before it.  `place` says what kind of text it is in.
    """

    around: tuple[Opened, ...]
    word: str
    before: str
    variables: tuple[str, ...]
    is_comment: bool = False

    @property
    def is_head(self) -> bool:
        """Whether the word is the head of a form."""
        return bool(self.around) and self.around[-1].items < 0


def cursor_at(source: Source, offset: int) -> Cursor:
    """The place at `offset`: a top-level form begins in the first column."""
    text = source.text[:offset]
    begin = max((match.start() for match in _START.finditer(text)), default=0)
    stack: list[Opened] = []
    variables: dict[str, None] = {}
    before = word = ""
    is_comment = False
    at = begin
    for token in tokens(text[begin:]):
        start, at = at, at + len(token)
        word, is_comment = "", False
        if token.isspace():
            continue
        if token.startswith(";"):
            is_comment = at == offset
            continue
        if token == "(":
            stack.append(Opened())
            before = ""
        elif token == ")":
            before = ""
            stack[-1:] = []
            stack[-1:] = [form.with_item("") for form in stack[-1:]]
        elif token == '"':  # a text that is not closed
            word = text[start:]
            break
        elif at == offset:
            word = token
        else:
            if stack and stack[-1].items >= 0 and _is_variable(token):
                variables[token] = None
            before = token
            stack[-1:] = [form.with_item(token) for form in stack[-1:]]
    return Cursor(tuple(stack), word, before, tuple(variables), is_comment)


def _is_variable(token: str) -> bool:
    return token[0] not in ':"_' and sort_of_literal(token) is None
