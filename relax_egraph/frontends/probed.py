"""Programs whose values are all results, beside those of the system that they come from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from relax_egraph.ir.module import IRModule


@dataclass(frozen=True, slots=True)
class Probe:
    """A value of the source: its name there, the operator that computes it, and where.

    `place` is ``file:line``, or empty if it is not known.
    """

    name: str
    operator: str
    place: str = ""

    def __str__(self) -> str:
        return f"{self.name} = {self.operator}" + (f" ({self.place})" if self.place else "")


@dataclass(frozen=True, slots=True)
class Probed:
    """A program of `system`; ``main`` of `module` returns all its values, in a flat tuple.

    These are the values of `probes`, in the order of the source, then the results of the program.
    `run` computes the same values by `system`, from the arguments of ``main`` in order.
    """

    system: str
    module: IRModule
    probes: tuple[Probe, ...]
    run: Callable[[Sequence[Any]], list[Any]]
