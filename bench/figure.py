"""A measured number, beside its bound and the numbers of other systems."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Figure:
    """`value` has the bound `wanted`; `beside` are other systems, in the same unit."""

    name: str
    value: float
    wanted: float | None = None
    beside: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def falls_short(self) -> bool:
        """Whether the value exceeds its bound."""
        return self.wanted is not None and self.value > self.wanted
