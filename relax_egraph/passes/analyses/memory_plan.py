"""The memory plan of a function: storage, offset and lifetime of each tensor."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Var
from relax_egraph.ir.message import counted
from relax_egraph.ir.polynomial import Polynomial, polynomial


@dataclass(frozen=True, slots=True)
class PlannedTensor:
    """A tensor of `size` bytes at `offset` of a storage, needed from step `begin` to `end`.

    Where it reuses the bytes of a tensor in place, `replaces` is the name of that tensor.
    """

    var: Var
    shape: tuple[Dim, ...]
    dtype: str
    size: Dim
    storage: int
    offset: Dim
    begin: int
    end: int
    replaces: str | None = None

    @property
    def name(self) -> str:
        """The name of its variable in the function."""
        return self.var.name


@dataclass(frozen=True, slots=True)
class PlannedStorage:
    """A storage, allocated before the binding of `before`: an arena, or one escaping tensor's."""

    size: Dim
    before: Var
    is_arena: bool


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The memory of one call of a function, without the memory of functions that it calls.

    `steps` are the titles of the steps; `live` are candidates for the most bytes needed at once;
    `unplanned` are the tensors whose size is only known at run time; `weights` are the bytes of
    the constants.
    """

    tensors: tuple[PlannedTensor, ...]
    storages: tuple[PlannedStorage, ...]
    steps: tuple[str, ...]
    live: tuple[Dim, ...]
    unplanned: tuple[Var, ...]
    weights: int

    @property
    def symbols(self) -> tuple[str, ...]:
        """The symbols that sizes depend on, sorted."""
        sizes = (*(t.size for t in self.tensors), self.total)
        return tuple(sorted({name for size in sizes for name in dims.symbols(size)}))

    @property
    def arena(self) -> Dim:
        """The bytes of all arenas."""
        return _sum([s.size for s in self.storages if s.is_arena])

    @property
    def total(self) -> Dim:
        """The bytes of all storages."""
        return _sum([s.size for s in self.storages])

    @property
    def unshared(self) -> Dim:
        """The sum of the bytes of all tensors, without sharing."""
        return _sum([t.size for t in self.tensors])

    @property
    def largest_live(self) -> Dim:
        """The most bytes that are needed at one step."""
        return reduce(dims.maximum, self.live, 0)

    def __repr__(self) -> str:
        tensors = counted(len(self.tensors), "tensor")
        storages = counted(len(self.storages), "storage")
        weights = f"{self.weights:,} of weights"
        return f"<MemoryPlan: {tensors} in {storages}, {_short(self.total)} bytes, {weights}>"

    def __str__(self) -> str:
        """A line for each tensor: its bytes, its storage and offset, and the steps that need it."""
        lines = [repr(self)[1:-1]]
        for t in self.tensors:
            place = f"at {size_text(t.offset)} of storage {t.storage}"
            steps = f"steps {t.begin} to {t.end}"
            lines.append(f"  {t.name}: {size_text(t.size)} bytes {place}, {steps}")
        lines += [f"  {v.name}: bytes that the run computes" for v in self.unplanned]
        return "\n".join(lines)

    def peak(self, sizes: Mapping[str, int]) -> int:
        """The bytes of storages and weights; raises ``KeyError`` for a symbol without a size."""
        return self.weights + dims.evaluate(self.total, sizes)

    def at(self, sizes: Mapping[str, int]) -> "MemoryPlan":
        """The plan with `sizes` in the place of these symbols; other symbols stay."""

        def at_sizes(dim: Dim) -> Dim:
            return dims.substitute(dim, sizes)

        return replace(
            self,
            tensors=tuple(
                replace(
                    t,
                    shape=tuple(map(at_sizes, t.shape)),
                    size=at_sizes(t.size),
                    offset=at_sizes(t.offset),
                )
                for t in self.tensors
            ),
            storages=tuple(replace(s, size=at_sizes(s.size)) for s in self.storages),
            live=tuple(map(at_sizes, self.live)),
        )

    def as_dict(self) -> dict[str, Any]:
        """The plan as JSON; a symbolic size is a string."""
        return {
            "arena": size_text(self.arena),
            "total": size_text(self.total),
            "largest_live": size_text(self.largest_live),
            "unshared": size_text(self.unshared),
            "weights": self.weights,
            "steps": list(self.steps),
            "storages": [
                {"size": size_text(s.size), "is_arena": s.is_arena} for s in self.storages
            ],
            "tensors": [
                {
                    "name": t.name,
                    "shape": [size_text(d) for d in t.shape],
                    "dtype": t.dtype,
                    "size": size_text(t.size),
                    "storage": t.storage,
                    "offset": size_text(t.offset),
                    "begin": t.begin,
                    "end": t.end,
                    "replaces": t.replaces,
                }
                for t in self.tensors
            ],
            "unplanned": [v.name for v in self.unplanned],
        }


def size_text(dim: Dim) -> int | str:
    """A number, or the text of a symbolic size."""
    return dim if isinstance(dim, int) else dims.text(dim)


_LONGEST = 60


def _short(dim: Dim) -> str:
    """The text of `dim`, abbreviated."""
    text = f"{dim:,}" if isinstance(dim, int) else dims.text(dim)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _sum(parts: Sequence[Dim]) -> Dim:
    total = Polynomial()
    for part in parts:
        total += polynomial(part)
    return total.dim()
