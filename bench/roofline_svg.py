"""A roofline as an SVG file: logarithmic axes, roofs, points, and a numbered list of them."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from xml.sax.saxutils import escape

from bench.labels import Box, around, placed
from bench.limits import Roof
from bench.result import OURS
from bench.roofline import Point, Roofline, Subject

LEFT, TOP, WIDTH, HEIGHT = 70.0, 60.0, 820.0, 640.0
"""The frame of the picture; below it are the systems, to its right the list of workloads."""

LIST_WIDTH, LINE = 470.0, 15.0
BELOW = 116.0
LETTER, LABEL_HEIGHT = 6.5, 12.0
"""Pixels of a digit of a label, and of its height."""

MARGIN = 6.0
"""Pixels beside a label: two that touch would read as one number."""

MARK, KERNEL = 4.0, 2.5
"""Radii of the points of workloads, and of kernels."""

KERNEL_STYLE = 'fill="#e377c2" fill-opacity="0.7"'

COLOURS = ("#d62728", "#1f77b4", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#17becf", "#7f7f7f")
"""Colours of the systems, ours first."""

DASHES = ("", "7 3", "2 3", "10 3 2 3", "4 6")
"""Dash patterns of the roofs."""

NOTE = (
    "Operations are counted as products are defined: minimal filters need fewer, and stand above "
    "the peak.  Points above a roof of memory read caches."
)

_STYLE = """text { font: 11px sans-serif; fill: #222 }
.title { font-size: 15px }
.number { font-weight: bold; text-anchor: middle }
.number { paint-order: stroke; stroke: white; stroke-width: 3px }
.grid { stroke: #e4e4e4 }
.frame { stroke: #222; fill: none }
.roof { stroke: #222; stroke-width: 1.5; fill: none }
.span { stroke: #bbb }
.leader { stroke: #999; stroke-width: 0.7 }"""


@dataclass(frozen=True, slots=True)
class Scale:
    """A map from numbers to pixels, by logarithms; `first` and `last` are powers of ten."""

    first: int
    last: int
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The pixel of `value`."""
        share = (math.log10(value) - self.first) / (self.last - self.first)
        return self.start + share * (self.end - self.start)

    @property
    def powers(self) -> range:
        """The exponents of labelled ticks."""
        return range(self.first, self.last + 1)


def roofline_svg(picture: Roofline, title: str) -> str:
    """The text of the file; deterministic for `picture`, which has at least one subject."""
    x, y = _scales(picture)
    systems = list(dict.fromkeys(p.name for s in picture.subjects for p in s.systems))
    colours = {name: COLOURS[k % len(COLOURS)] for k, name in enumerate(systems)}
    dashed = [(r, DASHES[k % len(DASHES)]) for k, r in enumerate(picture.roofs)]
    lower = max(TOP + HEIGHT + BELOW, TOP + LINE * (len(picture.subjects) + 2))
    wide = LEFT + WIDTH + LIST_WIDTH
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide:g}" height="{lower:g}">',
        f"<style>{_STYLE}</style>",
        '<rect width="100%" height="100%" fill="white"/>',
        _text(LEFT, 30, title, "title"),
        *_axes(x, y),
        *(line for r, d in dashed for line in _roof(r, picture.peak, d, x, y)),
        *_marks(picture, colours, x, y),
        *_numbers(picture, x, y),
        *_list(picture.subjects),
        *_legend(colours),
        *_legend_of_roofs(dashed),
        _text(LEFT, TOP + HEIGHT + 102, NOTE),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _scales(picture: Roofline) -> tuple[Scale, Scale]:
    """Scales of whole powers of ten around all points and the peak."""
    intensities = [p.intensity for p in picture.points]
    rates = [*(p.rate for p in picture.points), picture.peak.rate]
    across, up = (
        (math.floor(math.log10(min(v))), math.floor(math.log10(max(v))) + 1)
        for v in (intensities, rates)
    )
    return Scale(*across, LEFT, LEFT + WIDTH), Scale(*up, TOP + HEIGHT, TOP)


def _axes(x: Scale, y: Scale) -> list[str]:
    lines: list[str] = []
    for power in x.powers:
        at = x(10.0**power)
        lines.append(_line((at, TOP), (at, TOP + HEIGHT), "grid"))
        lines.append(_text(at, TOP + HEIGHT + 16, f"{10.0**power:g}", anchor="middle"))
    for power in y.powers:
        at = y(10.0**power)
        lines.append(_line((LEFT, at), (LEFT + WIDTH, at), "grid"))
        lines.append(_text(LEFT - 6, at + 4, f"{10.0 ** (power - 9):g}", anchor="end"))
    lines.append(
        f'<rect class="frame" x="{LEFT:g}" y="{TOP:g}" width="{WIDTH:g}" height="{HEIGHT:g}"/>'
    )
    middle = LEFT + WIDTH / 2
    lines.append(_text(middle, TOP + HEIGHT + 34, "operations for each byte", anchor="middle"))
    lines.append(_text(LEFT - 6, TOP - 10, "GFLOP/s", anchor="end"))
    return lines


def _roof(roof: Roof, peak: Roof, dashes: str, x: Scale, y: Scale) -> list[str]:
    """A level line, or one that rises to the peak; none if all of it is outside."""
    low, high = 10.0**x.first, 10.0**x.last
    if roof.is_level:
        return [_line((x(low), y(roof.rate)), (x(high), y(roof.rate)), "roof", dashes)]
    left = max(low, 10.0**y.first / roof.rate)
    right = min(high, peak.rate / roof.rate)
    if left >= right:
        return []
    start, end = ((x(at), y(roof.rate * at)) for at in (left, right))
    return [_line(start, end, "roof", dashes)]


def _marks(picture: Roofline, colours: Mapping[str, str], x: Scale, y: Scale) -> Iterable[str]:
    """Kernels below, then a line through the systems of each workload, and these; ours filled."""
    for subject in picture.subjects:
        for kernel in subject.kernels:
            name = f"{subject.name}: {kernel.name}"
            yield _circle(kernel, name, KERNEL, KERNEL_STYLE, x, y)
    for subject in picture.subjects:
        heights = [y(p.rate) for p in subject.systems]
        at = x(subject.ours.intensity)
        yield _line((at, min(heights)), (at, max(heights)), "span")
        for point in reversed(subject.systems):
            colour = colours[point.name]
            fill = colour if point.name == OURS else "white"
            style = f'fill="{fill}" stroke="{colour}" stroke-width="1.3"'
            yield _circle(point, f"{subject.name}: {point.name}", MARK, style, x, y)


def numbers_of(picture: Roofline) -> list[Box]:
    """The boxes of the numbers of workloads, without overlaps among them and with points."""
    x, y = _scales(picture)
    marks = [
        around((x(p.intensity), y(p.rate)), 2 * MARK, 2 * MARK)
        for s in picture.subjects
        for p in s.systems
    ]
    points = [(x(s.ours.intensity), y(s.ours.rate)) for s in picture.subjects]
    numbers = range(1, len(picture.subjects) + 1)
    sizes = [(LETTER * len(str(n)) + MARGIN, LABEL_HEIGHT) for n in numbers]
    return placed(points, sizes, marks, Box(LEFT, TOP, WIDTH, HEIGHT))


def _numbers(picture: Roofline, x: Scale, y: Scale) -> Iterable[str]:
    for number, (subject, box) in enumerate(
        zip(picture.subjects, numbers_of(picture), strict=True), 1
    ):
        point = x(subject.ours.intensity), y(subject.ours.rate)
        across, down = box.middle
        if math.hypot(across - point[0], down - point[1]) > 2 * LABEL_HEIGHT:
            yield _line(point, box.middle, "leader")
        yield _text(across, down + 4, str(number), "number")


def _list(subjects: Iterable[Subject]) -> Iterable[str]:
    left = LEFT + WIDTH + 20
    yield _text(left, TOP - 10, "workload: our rate, and as a multiple of the best peer's")
    for number, subject in enumerate(subjects, 1):
        down = TOP + LINE * number - 4
        yield _text(left + 16, down, str(number), "number")
        yield _text(left + 32, down, f"{subject.name}: {subject.remark}")


def _legend(colours: Mapping[str, str]) -> Iterable[str]:
    left, down = LEFT, TOP + HEIGHT + 58
    for name, colour in colours.items():
        at = f'cx="{left:g}" cy="{down - 4:g}" r="{MARK:g}"'
        yield f'<circle {at} fill="{colour if name == OURS else "white"}" stroke="{colour}"/>'
        yield _text(left + 9, down, name)
        left += 30 + LETTER * len(name)
    yield f'<circle cx="{left:g}" cy="{down - 4:g}" r="{KERNEL:g}" {KERNEL_STYLE}/>'
    yield _text(left + 9, down, "one kernel of ours")


def _legend_of_roofs(dashed: Iterable[tuple[Roof, str]]) -> Iterable[str]:
    left, down = LEFT, TOP + HEIGHT + 80
    for roof, dashes in dashed:
        unit = "GFLOP/s" if roof.is_level else "GB/s"
        name = f"{roof.name} {roof.rate / 1e9:.0f} {unit}"
        yield _line((left, down - 4), (left + 30, down - 4), "roof", dashes)
        yield _text(left + 36, down, name)
        left += 56 + LETTER * len(name)


def _circle(point: Point, name: str, radius: float, style: str, x: Scale, y: Scale) -> str:
    caption = escape(f"{name}: {point.rate / 1e9:.3g} GFLOP/s, {point.intensity:.3g} a byte")
    where = f'cx="{x(point.intensity):.1f}" cy="{y(point.rate):.1f}"'
    return f'<circle {where} r="{radius:g}" {style}><title>{caption}</title></circle>'


def _line(start: tuple[float, float], end: tuple[float, float], kind: str, dashes: str = "") -> str:
    (x1, y1), (x2, y2) = start, end
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line class="{kind}" {ends}{dashed}/>'


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    named = f' class="{kind}"' if kind else ""
    where = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text{named} x="{x:.1f}" y="{y:.1f}"{where}>{escape(text)}</text>'
