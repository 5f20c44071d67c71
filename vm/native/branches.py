"""Control-flow joins: the state of registers and storages where paths meet.

Values of two paths are merged where they are equal, and where they are tensors of one type in
storages that only one of the paths has: these are merged to one storage.  Other values become
unknown.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import TypeAlias

from relax_egraph.vm.native.refused import Refused
from relax_egraph.vm.native.regions import Region, common, is_known_in
from relax_egraph.vm.native.trace import Label
from relax_egraph.vm.native.values import Fields, Heap, Storage, Tensor, Value

Registers: TypeAlias = dict[int, Value]


@dataclass(slots=True)
class Path:
    """The state at a point: the registers, and the storages allocated on the path to it."""

    registers: Registers
    region: Region
    allocated: set[Storage] = field(default_factory=set[Storage])

    def copy(self) -> "Path":
        """A copy, for the other way of a branch."""
        heaps: Heaps = {}
        registers = {r: _copied(v, heaps) for r, v in self.registers.items()}
        return Path(registers, self.region, set(self.allocated))


Heaps: TypeAlias = dict[tuple[int, ...], Heap]
"""Merged heaps by the heaps that they replace, so that aliases of a heap stay aliases."""


def _copied(value: Value, heaps: Heaps) -> Value:
    match value:
        case Heap():
            return heaps.setdefault((id(value),), value.copy())
        case Fields(values):
            fields = tuple(_copied(v, heaps) for v in values)
            same = all(a is b for a, b in zip(fields, values, strict=True))
            return value if same else Fields(fields)
        case _:
            return value


@dataclass(slots=True)
class Meeting:
    """A join point of several paths."""

    label: Label = field(default_factory=Label)
    paths: list[Path] = field(default_factory=list[Path])


def joined(paths: Sequence[Path], live: Set[int]) -> Path:
    """The state where `paths` meet, with the registers that are `live`."""
    first, *others = paths
    if not others:
        return first
    allocated = set[Storage]().union(*(p.allocated for p in paths))
    registers: Registers = {}
    heaps: Heaps = {}
    for register in sorted(live):
        values = [p.registers.get(register) for p in paths]
        known = [v for v in values if v is not None]
        value = _one(known, paths, heaps) if len(known) == len(paths) else None
        if value is not None:
            registers[register] = value
    return Path(registers, common(p.region for p in paths), allocated)


def joined_value(values: Sequence[Value], paths: Sequence[Path]) -> Value:
    """The merged result of a function; raises `Refused` if the results cannot be merged."""
    value = _one(values, paths, {})
    if value is None:
        raise Refused("a branch with different results")
    return value


def _one(values: Sequence[Value], paths: Sequence[Path], heaps: Heaps) -> Value | None:
    """The value that merges `values` from `paths`, if there is one."""
    first, *others = values
    if all(v == first for v in others):
        return first
    if all(isinstance(v, Heap) for v in values):
        return _one_heap([v for v in values if isinstance(v, Heap)], heaps)
    if all(isinstance(v, Tensor) for v in values):
        return _one_tensor([v for v in values if isinstance(v, Tensor)], paths)
    tuples = [v.values for v in values if isinstance(v, Fields)]
    if len(tuples) == len(values) and len({len(t) for t in tuples}) == 1:
        fields = [_one(several, paths, heaps) for several in zip(*tuples, strict=True)]
        known = tuple(f for f in fields if f is not None)
        return Fields(known) if len(known) == len(fields) else None
    return None


def _one_heap(several: Sequence[Heap], heaps: Heaps) -> Heap | None:
    first, *others = several
    if any(h.size != first.size or h.argument is not first.argument for h in others):
        return None
    names = tuple(map(id, several))
    if names not in heaps:
        one = heaps[names] = first.copy()
        one.lost = set[int]().union(*(h.lost for h in several))
        for slot in set[int]().union(*(h.slots for h in several)):
            number = first.slots.get(slot, 0)
            if any(h.slots.get(slot, 0) != number for h in others):
                one.lost.add(slot)
    return heaps[names]


def _one_tensor(tensors: Sequence[Tensor], paths: Sequence[Path]) -> Tensor | None:
    """A tensor that replaces `tensors`, if their storages can be merged."""
    first, *others = tensors
    if any(
        (t.dtype, t.shape, t.offset) != (first.dtype, first.shape, first.offset) for t in others
    ):
        return None
    storages = [t.owner.itself() for t in tensors if isinstance(t.owner, Storage)]
    if len(storages) < len(tensors):
        return None
    chosen = storages[0]
    if any(s.size != chosen.size for s in storages) or not _apart(storages, paths):
        return None
    region = common(s.region for s in storages)
    if any(s.region.loop is not region.loop for s in storages):
        return None
    if not is_known_in(chosen.size, region):
        return None
    chosen.region = region
    for storage in storages:
        if storage.itself() is not chosen:
            storage.itself().same_as = chosen
    return Tensor(chosen, first.dtype, first.shape, first.offset)


def _apart(storages: Sequence[Storage], paths: Sequence[Path]) -> bool:
    """Whether each path has none of the storages of the others."""
    for own, path in zip(storages, paths, strict=True):
        allocated = {s.itself() for s in path.allocated}
        if any(s is not own and s in allocated for s in storages):
            return False
    return True
