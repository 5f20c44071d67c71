"""Placement of labels near points, inside a frame and without overlaps."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

NEAR, STEP, DIRECTIONS = 8.0, 6.0, 16
"""The initial distance of a label's middle from its point, its growth, and the number of directions
to try."""


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle; `x` grows to the right, `y` downwards."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> tuple[float, float]:
        """Its middle."""
        return self.x + self.width / 2, self.y + self.height / 2

    def meets(self, other: "Box") -> bool:
        """Whether both have a common area."""
        return (
            self.x < other.x + other.width
            and other.x < self.x + self.width
            and self.y < other.y + other.height
            and other.y < self.y + self.height
        )

    def has(self, other: "Box") -> bool:
        """Whether `other` is inside this box."""
        return (
            self.x <= other.x
            and self.y <= other.y
            and other.x + other.width <= self.x + self.width
            and other.y + other.height <= self.y + self.height
        )


def around(point: tuple[float, float], width: float, height: float) -> Box:
    """The box around `point`."""
    x, y = point
    return Box(x - width / 2, y - height / 2, width, height)


def placed(
    points: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    obstacles: Sequence[Box],
    frame: Box,
) -> list[Box]:
    """A box of `size` for each point, in order, each at the nearest free place.

    Raises `ValueError` if the `frame` has no free place.
    """
    boxes: list[Box] = []
    for point, size in zip(points, sizes, strict=True):
        for box in _tried(point, size, math.hypot(frame.width, frame.height)):
            if frame.has(box) and not any(box.meets(other) for other in (*obstacles, *boxes)):
                boxes.append(box)
                break
        else:
            raise ValueError(f"no place for a label of {size} at {point}")
    return boxes


def _tried(point: tuple[float, float], size: tuple[float, float], farthest: float) -> Iterator[Box]:
    """Boxes around `point` at growing distances: to the right first, then on both sides."""
    width, height = size
    far = NEAR
    while far < farthest:
        for turn in range(DIRECTIONS):
            angle = 2 * math.pi / DIRECTIONS * ((turn + 1) // 2) * (-1) ** turn
            x = point[0] + (far + width / 2) * math.cos(angle)
            y = point[1] + (far + height / 2) * math.sin(angle)
            yield around((x, y), width, height)
        far += STEP
