"""Diagrams as SVG, for light and dark pages."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from relax_egraph.pictures.boxes import Box, Diagram, Row
from relax_egraph.pictures.layers import GAP, Edge, Places, Point, Size, places

CHARACTER, ROW, HEAD, PAD = 7.25, 19.0, 22.0, 9.0
"""Pixels: the width of a character, the heights of a row and of a title, and the padding."""

CAPTION = 30.0
MOST = 72
"""The most characters of a row; the whole text is shown while the pointer is over it."""

TONES = 8

_STYLE = """
:root { color-scheme: light dark }
svg { --page: #fff; --ink: #1c2430; --dim: #5c6675; --box: #f4f6f9; --frame: #aab4c2;
  --edge: #7d8998; background: var(--page) }
.t0 { --tone: #2f6fde } .t1 { --tone: #b8590b } .t2 { --tone: #2b8a3e } .t3 { --tone: #a5318f }
.t4 { --tone: #7a6a00 } .t5 { --tone: #0b7f8c } .t6 { --tone: #c2362b } .t7 { --tone: #6741d9 }
@media (prefers-color-scheme: dark) {
  svg { --page: #14181f; --ink: #e3e8ef; --dim: #98a4b3; --box: #1f2630; --frame: #4a5666;
    --edge: #6f7d8f }
  .t0 { --tone: #7aa7ff } .t1 { --tone: #f0a35e } .t2 { --tone: #6fcf85 } .t3 { --tone: #e58ad6 }
  .t4 { --tone: #d8c64a } .t5 { --tone: #5cc9d6 } .t6 { --tone: #ff8f85 } .t7 { --tone: #b29cff }
}
text { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: var(--ink);
  white-space: pre }
.caption { font-weight: bold } .about, .other { fill: var(--dim) }
.box rect { fill: var(--box); stroke: var(--tone, var(--frame)) }
.box.result > rect { stroke-width: 2.5 }
.box .title { font-weight: bold; fill: var(--tone, var(--ink)) }
.edge { fill: none; stroke: var(--edge) }
.edge.other { stroke-dasharray: 2 4; opacity: 0.55 }
""".strip()


def document(diagrams: Sequence[Diagram], title: str) -> str:
    """One SVG with all `diagrams`, one below the other."""
    parts: list[str] = []
    width, y = 320.0, 0.0
    for diagram in diagrams:
        drawn = _Drawing(diagram)
        parts.append(f'<g transform="translate(0 {_px(y)})">')
        parts += drawn.lines()
        parts.append("</g>")
        width = max(width, drawn.size[0])
        y += drawn.size[1]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_px(width)}" height="{_px(y)}" '
        f'viewBox="0 0 {_px(width)} {_px(y)}" role="img">'
    )
    lines = (head, f"<title>{escape(title)}</title>", f"<style>{_STYLE}</style>", *parts, "</svg>")
    return "\n".join(lines) + "\n"


class _Drawing:
    """One diagram at its places."""

    def __init__(self, diagram: Diagram) -> None:
        self._diagram = diagram
        sizes = list(map(_size, diagram.boxes))
        reads = [[k for row in box.rows if row.marked for k in row.reads] for box in diagram.boxes]
        self._sizes = sizes
        self._places: Places = places(sizes, reads)
        width, height = self._places.size
        letters = len(diagram.caption) * CHARACTER + 2 * GAP
        self.size: Size = (max(width, letters), height + CAPTION)

    def lines(self) -> Iterator[str]:
        """The caption, the edges, then the boxes above them."""
        yield _text(GAP, CAPTION - 8, self._diagram.caption, "caption")
        yield f'<g transform="translate(0 {_px(CAPTION)})">'
        for number, box in enumerate(self._diagram.boxes):
            yield from self._edges(number, box)
        for number, box in enumerate(self._diagram.boxes):
            yield from self._box(number, box)
        yield "</g>"

    def _edges(self, number: int, box: Box) -> Iterator[str]:
        seen = set[tuple[int, bool]]()
        for k, row in enumerate(box.rows):
            for read in row.reads:
                if read != number and (read, row.marked) not in seen:
                    seen.add((read, row.marked))
                    path = self._path((read, number), k)
                    yield f'<path class="edge{"" if row.marked else " other"}" d="{path}"/>'

    def _path(self, edge: Edge, row: int) -> str:
        """From a box to its reader through the bends of the edge; an alternative goes sideways."""
        box, reader = edge
        (x, y), (width, height) = self._places.corners[box], self._sizes[box]
        (left, top), (wide, _) = self._places.corners[reader], self._sizes[reader]
        if edge in self._places.bends:
            begin, end = (x + width / 2, y + height), (left + wide / 2, top)
            return _downwards([begin, *self._places.bends[edge], end])
        to_right = x + width / 2 <= left + wide / 2
        begin = (x + width if to_right else x, y + height / 2)
        return _sideways(begin, (left if to_right else left + wide, top + HEAD + (row + 0.5) * ROW))

    def _box(self, number: int, box: Box) -> Iterator[str]:
        (x, y), (width, height) = self._places.corners[number], self._sizes[number]
        tone = "" if box.tone is None else f" t{box.tone % TONES}"
        yield f'<g class="box{tone}{" result" if box.result else ""}">'
        if box.note:
            yield f"<title>{escape(box.note)}</title>"
        yield (
            f'<rect x="{_px(x)}" y="{_px(y)}" width="{_px(width)}" height="{_px(height)}" rx="5"/>'
        )
        yield _text(x + PAD, y + 15, box.title, "title")
        if box.about:
            yield _text(x + width - PAD, y + 15, box.about, "about", 'text-anchor="end"')
        for k, row in enumerate(box.rows):
            yield from _row(row, x + PAD, y + HEAD + k * ROW + 13)
        yield "</g>"


def _row(row: Row, x: float, y: float) -> Iterator[str]:
    is_cut = len(row.text) > MOST
    if is_cut:
        yield f"<g><title>{escape(row.text)}</title>"
    yield _text(x, y, _cut(row.text), "" if row.marked else "other")
    if is_cut:
        yield "</g>"


def _size(box: Box) -> Size:
    head = len(box.title) + (len(box.about) + 2 if box.about else 0)
    letters = max((head, *(len(_cut(row.text)) for row in box.rows)))
    body = len(box.rows) * ROW + PAD / 2 if box.rows else 0.0
    return letters * CHARACTER + 2 * PAD, HEAD + body


def _cut(text: str) -> str:
    return text if len(text) <= MOST else f"{text[: MOST - 1]}…"


def _downwards(points: Sequence[Point]) -> str:
    """A smooth line through `points`, vertical at each."""
    (x, y), *rest = points
    parts = [f"M{_px(x)} {_px(y)}"]
    for to_x, to_y in rest:
        half = (y + to_y) / 2
        parts.append(f"C{_px(x)} {_px(half)} {_px(to_x)} {_px(half)} {_px(to_x)} {_px(to_y)}")
        x, y = to_x, to_y
    return " ".join(parts)


def _sideways(begin: Point, end: Point) -> str:
    """A smooth line, horizontal at both ends."""
    (x, y), (to_x, to_y) = begin, end
    half = (x + to_x) / 2
    return (
        f"M{_px(x)} {_px(y)} C{_px(half)} {_px(y)} {_px(half)} {_px(to_y)} {_px(to_x)} {_px(to_y)}"
    )


def _text(x: float, y: float, text: str, kind: str, more: str = "") -> str:
    attributes: Mapping[str, str] = {"x": _px(x), "y": _px(y)} | ({"class": kind} if kind else {})
    said = " ".join(f'{name}="{value}"' for name, value in attributes.items())
    return f"<text {said}{f' {more}' if more else ''}>{escape(text)}</text>"


def _px(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
