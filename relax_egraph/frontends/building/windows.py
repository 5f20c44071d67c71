"""Windows of convolutions and pools."""

from dataclasses import dataclass

SPATIAL = {1: "W", 2: "HW", 3: "DHW"}
"""The letters of spatial axes by their number."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows over some axes: extents, strides, dilations, and padding before and after."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.sizes)

    @property
    def reach(self) -> tuple[int, ...]:
        """The number of elements that a window spans along each axis."""
        pairs = zip(self.sizes, self.dilations, strict=True)
        return tuple((size - 1) * dilation + 1 for size, dilation in pairs)

    @property
    def padding(self) -> tuple[int, ...]:
        """Padding before all axes, then after them."""
        return (*self.before, *self.after)
