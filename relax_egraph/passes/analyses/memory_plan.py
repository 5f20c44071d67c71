"""A plan of memory: where the tensors of one function lie, and from when to when."""

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

    Where it lies in bytes that another one has left, `replaces` is the name of that one.
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
        """What the function calls it."""
        return self.var.name


@dataclass(frozen=True, slots=True)
class PlannedStorage:
    """So many bytes, allocated before the binding of `before`: an arena, or of what leaves."""

    size: Dim
    before: Var
    is_arena: bool


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The memory of one call of a function, without that of the functions it calls.

    `steps` say what happens at each; `live` are the bytes needed at once, of which the largest
    counts; `unplanned` are the tensors whose size is only known in the run; `weights` the bytes of
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
        """The bytes of all tensors, if no two ever shared any."""
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
        """A line for each tensor: its bytes, where they are, and which steps need them."""
        lines = [repr(self)[1:-1]]
        for t in self.tensors:
            place = f"at {written(t.offset)} of storage {t.storage}"
            steps = f"steps {t.begin} to {t.end}"
            lines.append(f"  {t.name}: {written(t.size)} bytes {place}, {steps}")
        lines += [f"  {v.name}: bytes that the run computes" for v in self.unplanned]
        return "\n".join(lines)

    def peak(self, sizes: Mapping[str, int]) -> int:
        """The bytes of storages and weights; raises ``KeyError`` for a symbol without a size."""
        return self.weights + dims.evaluate(self.total, sizes)

    def at(self, sizes: Mapping[str, int]) -> "MemoryPlan":
        """The plan where the symbols have these sizes; others stay."""

        def known(dim: Dim) -> Dim:
            return dims.substitute(dim, sizes)

        return replace(
            self,
            tensors=tuple(
                replace(
                    t,
                    shape=tuple(map(known, t.shape)),
                    size=known(t.size),
                    offset=known(t.offset),
                )
                for t in self.tensors
            ),
            storages=tuple(replace(s, size=known(s.size)) for s in self.storages),
            live=tuple(map(known, self.live)),
        )

    def as_dict(self) -> dict[str, Any]:
        """The plan as JSON has it; a size over symbols is a text."""
        return {
            "arena": written(self.arena),
            "total": written(self.total),
            "largest_live": written(self.largest_live),
            "unshared": written(self.unshared),
            "weights": self.weights,
            "steps": list(self.steps),
            "storages": [{"size": written(s.size), "is_arena": s.is_arena} for s in self.storages],
            "tensors": [
                {
                    "name": t.name,
                    "shape": [written(d) for d in t.shape],
                    "dtype": t.dtype,
                    "size": written(t.size),
                    "storage": t.storage,
                    "offset": written(t.offset),
                    "begin": t.begin,
                    "end": t.end,
                    "replaces": t.replaces,
                }
                for t in self.tensors
            ],
            "unplanned": [v.name for v in self.unplanned],
        }


def written(dim: Dim) -> int | str:
    """A number, or the text of what depends on symbols."""
    return dim if isinstance(dim, int) else dims.text(dim)


_LONGEST = 60


def _short(dim: Dim) -> str:
    """`dim` in few characters."""
    text = f"{dim:,}" if isinstance(dim, int) else dims.text(dim)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _sum(parts: Sequence[Dim]) -> Dim:
    total = Polynomial()
    for part in parts:
        total += polynomial(part)
    return total.dim()
