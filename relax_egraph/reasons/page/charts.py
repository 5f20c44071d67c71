"""The geometry of charts: bars by rule, and nodes over the iterations of phases."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

WIDTH, HEIGHT = 720, 150
"""The size of a time line, in its own units."""

_LEFT, _TOP, _BOTTOM = 8, 30, 20


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar for the gain of a rule: the extra cost of the result without it, in seconds.

    `width` is the width of the bar, in percent of the widest bar.
    """

    rule: Mapping[str, Any]
    gain: float | None
    width: float

    @property
    def is_idle(self) -> bool:
        """Whether the rule is known to have no part in the result."""
        return self.rule["kernels"] == 0 and not self.rule["share"]


def bars(figures: Mapping[str, Any]) -> list[Bar]:
    """A bar for each rule, ordered by share of the gain, then by kernels, then by matches."""

    def place(rule: Mapping[str, Any]) -> tuple[float, int, int]:
        return -(rule["share"] or 0.0), -(rule["kernels"] or 0), -rule["matches"]

    rules = sorted(figures["rules"], key=place)
    widest = max((abs(r["share"] or 0.0) for r in rules), default=0.0)
    in_order: list[Bar] = []
    for rule in rules:
        share, whole = rule["share"], figures["cost_before"] - figures["cost"]
        width = 100 * abs(share) / widest if share and widest else 0.0
        in_order.append(Bar(rule, None if share is None else share * whole, round(width, 1)))
    return in_order


@dataclass(frozen=True, slots=True)
class Band:
    """A phase in a time line: its left edge and its width."""

    phase: Mapping[str, Any]
    left: float
    width: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """A chart of nodes over iterations: the points of a polyline and of the polygon below it."""

    region: Mapping[str, Any]
    bands: tuple[Band, ...]
    line: str
    area: str
    most: int
    width: int = WIDTH
    height: int = HEIGHT


def timeline(region: Mapping[str, Any]) -> Timeline:
    """The time line of the phases of `region`, an entry of the figures."""
    phases = region["phases"]
    steps = [max(1, phase["iterations"]) for phase in phases]
    each = (WIDTH - 2 * _LEFT) / max(1, sum(steps))
    most = max((n for phase in phases for n in (*phase["growth"], phase["nodes"])), default=0)
    floor = HEIGHT - _BOTTOM

    def point(iteration: float, nodes: int) -> str:
        y = floor - (floor - _TOP) * nodes / max(1, most)
        return f"{_LEFT + each * iteration:.1f},{y:.1f}"

    bands, points, begin = list[Band](), list[str](), 0
    for phase, count in zip(phases, steps, strict=True):
        bands.append(Band(phase, round(_LEFT + each * begin, 1), round(each * count, 1)))
        points += [point(begin + k, nodes) for k, nodes in enumerate(phase["growth"])]
        begin += count
        points.append(point(begin, phase["nodes"]))
    line = " ".join(points)
    left, right = _LEFT, _LEFT + each * begin
    area = f"{left:.1f},{floor} {line} {right:.1f},{floor}" if points else ""
    return Timeline(region, tuple(bands), line, area, most)
