"""Picture of a memory plan: steps to the right, bytes upwards, a rectangle for each tensor."""

from collections.abc import Iterator, Sequence
from html import escape

from relax_egraph.lower.memory import MemoryPlan

LEFT, RIGHT, TOP, BOTTOM = 96, 24, 56, 56
"""The margins in pixels: left for bytes, top for the title, bottom for steps."""

HEIGHT = 480
"""The height of the bytes in pixels."""

MOST_WIDTH, STEP_WIDTH = 1600, 28
"""The most pixels of all steps, and the pixels of one step if they fit."""

FONT = 11
"""The font size; the width of a character is assumed to be 0.6 of it."""

COLOURS = ("#8fb8de", "#f2c48d", "#a8d5a2", "#d9a6c8", "#c9c27a", "#9fd0cf", "#e0a59a", "#b5b0dd")


def picture(plan: MemoryPlan, title: str) -> str:
    """An SVG of `plan`, whose sizes must be numbers.

    Storages are stacked, arenas first.  A name that does not fit into its rectangle is a tooltip.
    """
    return "\n".join(_Picture(plan, title).lines()) + "\n"


class _Picture:
    def __init__(self, plan: MemoryPlan, title: str) -> None:
        self._plan, self._title = plan, title
        order = sorted(range(len(plan.storages)), key=lambda k: not plan.storages[k].is_arena)
        self._base: dict[int, int] = {}
        self._bytes = 0
        for k in order:
            self._base[k] = self._bytes
            self._bytes += _number(plan.storages[k].size)
        self._steps = max(1, len(plan.steps))
        self._step = min(STEP_WIDTH, MOST_WIDTH / self._steps)
        self._width = max(480.0, self._steps * self._step)
        self._replaced = {t.replaces for t in plan.tensors}

    def lines(self) -> Iterator[str]:
        """The lines of the file."""
        width, height = LEFT + self._width + RIGHT, TOP + HEIGHT + BOTTOM
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_px(width)}" height="{height}" '
            f'viewBox="0 0 {_px(width)} {height}" font-family="monospace" font-size="{FONT}">'
        )
        yield f"<title>{escape(self._title)}</title>"
        yield '<rect width="100%" height="100%" fill="white"/>'
        yield f'<text x="{LEFT}" y="20" font-size="14">{escape(self._title)}</text>'
        yield f'<text x="{LEFT}" y="38" fill="#555">{escape(self._summary())}</text>'
        yield from self._scales()
        for number, _ in enumerate(self._plan.tensors):
            yield from self._tensor(number)
        yield "</svg>"

    def _summary(self) -> str:
        plan = self._plan
        return (
            f"{bytes_text(_number(plan.total))} for {len(plan.tensors)} tensors, at once "
            f"{bytes_text(_number(plan.largest_live))}, without reuse "
            f"{bytes_text(_number(plan.unshared))}"
        )

    def _scales(self) -> Iterator[str]:
        bottom, right = TOP + HEIGHT, _px(LEFT + self._width)
        for size in _ticks(self._bytes, 8):
            y = _px(self._y(size))
            yield f'<line x1="{LEFT}" y1="{y}" x2="{right}" y2="{y}" stroke="#ddd"/>'
            yield f'<text x="{LEFT - 8}" y="{y}" dy="4" text-anchor="end">{bytes_text(size)}</text>'
        for step in _ticks(self._steps - 1, 20):
            x = _px(self._x(step) + self._step / 2)
            yield f'<text x="{x}" y="{bottom + 18}" text-anchor="middle">{step}</text>'
        middle = _px(LEFT + self._width / 2)
        yield f'<text x="{middle}" y="{bottom + 40}" text-anchor="middle">step</text>'
        for number, storage in enumerate(self._plan.storages):
            if self._base[number]:
                y = _px(self._y(self._base[number]))
                yield (
                    f'<line x1="{LEFT}" y1="{y}" x2="{right}" y2="{y}" '
                    f'stroke="#555" stroke-dasharray="{"none" if storage.is_arena else "4 3"}"/>'
                )

    def _tensor(self, number: int) -> Iterator[str]:
        tensor = self._plan.tensors[number]
        size, at = _number(tensor.size), self._base[tensor.storage] + _number(tensor.offset)
        # a tensor replaces another in the middle of a step
        x = self._x(tensor.begin + (0.5 if tensor.replaces else 0))
        right = self._x(tensor.end + (0.5 if tensor.name in self._replaced else 1))
        y, bottom = self._y(at + size), self._y(at)
        made_by = self._plan.steps[tensor.begin]
        tooltip = (
            f"{tensor.name}: {bytes_text(size)} at {at:,}, steps {tensor.begin} to {tensor.end}, "
            f"computed by {made_by}"
        )
        yield "<g>"
        yield f"<title>{escape(tooltip)}</title>"
        yield (
            f'<rect x="{_px(x)}" y="{_px(y)}" width="{_px(right - x)}" '
            f'height="{_px(max(1.0, bottom - y))}" fill="{COLOURS[number % len(COLOURS)]}" '
            f'stroke="#555" stroke-width="0.5"/>'
        )
        letters = 0.6 * FONT * len(tensor.name) + 4
        cx, cy = _px((x + right) / 2), _px((y + bottom) / 2)
        name = escape(tensor.name)
        if letters <= right - x and bottom - y >= FONT:
            yield f'<text x="{cx}" y="{cy}" dy="4" text-anchor="middle">{name}</text>'
        elif letters <= bottom - y and right - x >= FONT:
            turned = f'transform="rotate(-90 {cx} {cy})"'
            yield f'<text x="{cx}" y="{cy}" dy="4" text-anchor="middle" {turned}>{name}</text>'
        yield "</g>"

    def _x(self, step: float) -> float:
        return LEFT + step * self._width / self._steps

    def _y(self, size: int) -> float:
        return TOP + HEIGHT * (1 - size / max(1, self._bytes))


def bytes_text(size: int) -> str:
    """``1.5 KiB``."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size / factor:.4g} {unit}"
    return f"{size} B"


def _ticks(most: int, count: int) -> Sequence[int]:
    """At most `count` numbers from 0 to `most`, a power of two apart."""
    step = 1
    while most > count * step:
        step *= 2
    return range(0, most + 1, step)


def _number(size: object) -> int:
    assert isinstance(size, int), "sizes are known"
    return size


def _px(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
