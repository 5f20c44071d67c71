"""The canonical layout of rule files: spaces and indentation; line breaks are the author's.

    (rewrite (R.add (R.multiply a b) c)          a second side stands under the first one,
             (R.ewise_fma a b c)
      :when ((is-float a)                        options by 2,
             (= s (shape-of c)))                 facts and arguments under the first one of them
      :ruleset fma :name "fma-of-sum")

Where the head of a form is alone on its line, what follows is by 2 to the right of the side, fact
or action that it is in.  A line that is too long is broken before an item of its outermost form.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from relax_egraph.egraph.rulebook.forms import MEANING, RULES, Source
from relax_egraph.egraph.rulebook.reader import read, tokens

WIDTH = 100
"""The most columns of a line, where it can be broken."""

_STEP = 2


@dataclass(slots=True)
class _Word:
    """An atom, or a comment; `begins` says whether it is the first of its line."""

    text: str
    begins: bool

    @property
    def is_comment(self) -> bool:
        return self.text.startswith(";")


@dataclass(slots=True)
class _List:
    """What stands between parentheses."""

    begins: bool
    items: list["_Item"] = field(default_factory=list["_Item"])

    is_comment = False

    @property
    def head(self) -> str:
        first = self.items[0] if self.items else None
        return first.text if isinstance(first, _Word) else ""


_Item: TypeAlias = _Word | _List


def formatted(source: Source) -> str:
    """The text of a rule file, or of a file test, in canonical layout.

    Its tokens and comments are the same, in the same order; formatting twice changes nothing more.
    Raises `RuleError` where a form does not read.
    """
    for _ in read(source):
        pass
    parts: list[str] = []
    for item, blank in _top_level(source.text):
        beside = isinstance(item, _Word) and not item.begins
        parts += [" " if beside else "\n" * (1 + blank), _laid_out(item)]
    return "".join(parts[1:]) + "\n" * bool(parts)


def _top_level(text: str) -> Iterator[tuple[_Item, bool]]:
    """The forms and comments of a file, each with whether a blank line is above it."""
    stack: list[_List] = []
    lines = 2
    top = False
    for token in tokens(text):
        if token.isspace():
            lines += token.count("\n")
            continue
        begins, blank, lines = lines > 0, lines > 1, 0
        if token == "(":
            item: _Item = _List(begins)
            if stack:
                stack[-1].items.append(item)
            else:
                top = blank
            stack.append(item)
        elif token == ")":
            item = stack.pop()
            if not stack:
                yield item, top
        elif stack:
            stack[-1].items.append(_Word(token.rstrip(), begins))
        else:
            yield _Word(token.rstrip(), begins), blank


def _laid_out(item: _Item) -> str:
    """The text of a top-level item."""
    while True:
        page = _Page()
        page.add(item, _Place(0, 0))
        wide = next((k for k, line in enumerate(page.lines) if len(line) > WIDTH), None)
        if wide is None or not page.break_line(wide):
            return "\n".join(page.lines)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an item stands: how deep, and the column that heads alone on a line go by."""

    depth: int
    anchor: int


@dataclass(frozen=True, slots=True)
class _Written:
    """An item and the column where it begins."""

    item: _Item
    column: int


@dataclass(slots=True)
class _Page:
    """The lines so far, and for each line the items in it that a break may precede.

    These have their depth and their column.
    """

    lines: list[str] = field(default_factory=lambda: [""])
    within: list[list[tuple[int, int, _Item]]] = field(default_factory=lambda: [[]])

    def add(self, item: _Item, place: _Place) -> None:
        """Write `item` where the last line ends."""
        if isinstance(item, _Word):
            self.lines[-1] += item.text
            return
        opened = len(self.lines[-1])
        self.lines[-1] += "("
        before: list[_Written] = []
        last: _Item | None = None
        for inner in item.items:
            if (last and last.is_comment) or (inner.begins and (last or inner.is_comment)):
                self._new_line(_indent(item.head, inner, opened, before, place))
            elif last:
                self.lines[-1] += " "
                if not _is_name(last):
                    self.within[-1].append((place.depth, len(self.lines[-1]), inner))
            column = len(self.lines[-1])
            before += [] if inner.is_comment else [_Written(inner, column)]
            anchors = inner.begins or place.depth == 0 or not item.head
            self.add(inner, _Place(place.depth + 1, column if anchors else place.anchor))
            last = inner
        if last and last.is_comment:
            self._new_line(opened + _STEP)
        self.lines[-1] += ")"

    def _new_line(self, indent: int) -> None:
        self.lines.append(" " * indent)
        self.within.append([])

    def break_line(self, line: int) -> bool:
        """Break a line before one of its outermost items, the last that begins within the width.

        Returns whether there is any.
        """
        items = [item for item in self.within[line] if item[1] <= WIDTH]
        if not items:
            return False
        outermost = min(depth for depth, _, _ in items)
        *_, last = (item for depth, _, item in items if depth == outermost)
        last.begins = True
        return True


def _indent(head: str, item: _Item, opened: int, before: Sequence[_Written], place: _Place) -> int:
    """The column of an item that begins a line, in a form that opens in the column `opened`.

    `before` is what the form has before it, besides comments.
    """
    if not head:
        return opened + 1
    if place.depth == 0 and len(before) >= _BODY.get(head, len(before) + 1):
        return opened + _STEP
    hanging = (place.anchor if place.depth else opened) + _STEP
    if len(before) < 2 or before[1].item.begins:
        return hanging
    aligned = before[1].column
    return aligned if aligned + _width(item) <= WIDTH else min(hanging, aligned)


_BODY = {**dict.fromkeys(RULES, 3), MEANING: 2, "let": 2}
"""The first item of a top-level form that stands by `_STEP` to the right."""


def _is_name(item: _Item) -> bool:
    """Whether an item is the name of an option or attribute, which its value stays beside."""
    return isinstance(item, _Word) and item.text.startswith(":")


def _width(item: _Item) -> int:
    """The columns of an item up to the first break in it, with the parentheses that close it."""
    flat = "".join(_flat(item))
    return len(flat.partition("\n")[0])


def _flat(item: _Item) -> Iterator[str]:
    """The characters of an item on one line; a line end for each break in it."""
    if isinstance(item, _Word):
        yield from item.text
        return
    yield "("
    for k, inner in enumerate(item.items):
        if k:
            yield "\n" if inner.begins else " "
        yield from _flat(inner)
    yield ")"
