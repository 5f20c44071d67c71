"""One measured number, beside what is wanted of it and what others take."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Figure:
    """`value` is to be no more than what is `wanted`; `beside` are others, in the same unit."""

    name: str
    value: float
    wanted: float | None = None
    beside: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def falls_short(self) -> bool:
        """Whether more was measured than is wanted."""
        return self.wanted is not None and self.value > self.wanted
