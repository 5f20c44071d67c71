"""Boxes with rows: what a picture shows, before it has places."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """A line of text in a box; the value of each of the boxes `reads` is used by it.

    A row that is not `marked` is an alternative: its edges are faint, and have no influence on the
    layers of the picture.
    """

    text: str
    reads: tuple[int, ...] = ()
    marked: bool = True


@dataclass(frozen=True, slots=True)
class Box:
    """A box with a `title` to the left and `about` to the right, above its rows.

    Boxes with one `tone` have one colour; without a tone it is neutral.  A `result` has a thick
    frame.  `note` is shown while the pointer is over it.
    """

    title: str
    about: str = ""
    rows: tuple[Row, ...] = ()
    tone: int | None = None
    result: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Diagram:
    """Boxes by number under a `caption`."""

    caption: str
    boxes: Sequence[Box]
