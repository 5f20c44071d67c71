"""Where paths through a function part and meet again.

Values of two paths are one where they are equal, and where they are tensors of one type in storages
that only one of the paths has: these are made one storage.  What is one thing or another is lost.
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
    """What is known at a place: the registers, and the storages that were made on the way."""

    registers: Registers
    region: Region
    made: set[Storage] = field(default_factory=set[Storage])

    def copy(self) -> "Path":
        """The same, to go on from in another way."""
        heaps: Heaps = {}
        registers = {r: _copied(v, heaps) for r, v in self.registers.items()}
        return Path(registers, self.region, set(self.made))


Heaps: TypeAlias = dict[tuple[int, ...], Heap]
"""Heaps by those that they stand for, so that what is one heap under two names stays one."""


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
    """A place that several paths lead to."""

    label: Label = field(default_factory=Label)
    paths: list[Path] = field(default_factory=list[Path])


def joined(paths: Sequence[Path], live: Set[int]) -> Path:
    """What is known where `paths` meet; of the registers, those that are `live`."""
    first, *others = paths
    if not others:
        return first
    made = set[Storage]().union(*(p.made for p in paths))
    registers: Registers = {}
    heaps: Heaps = {}
    for register in sorted(live):
        values = [p.registers.get(register) for p in paths]
        known = [v for v in values if v is not None]
        value = _one(known, paths, heaps) if len(known) == len(paths) else None
        if value is not None:
            registers[register] = value
    return Path(registers, common(p.region for p in paths), made)


def joined_value(values: Sequence[Value], paths: Sequence[Path]) -> Value:
    """What a function returns; raises `Refused` where that is not one thing."""
    value = _one(values, paths, {})
    if value is None:
        raise Refused("a branch that gives one value or another")
    return value


def _one(values: Sequence[Value], paths: Sequence[Path], heaps: Heaps) -> Value | None:
    """What all `values` are, on their `paths`."""
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
    if any(h.size != first.size or h.given is not first.given for h in others):
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
    """A tensor that stands for all, if their storages can be made one."""
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
    """Whether each path has none of the storages but its own."""
    for own, path in zip(storages, paths, strict=True):
        made = {s.itself() for s in path.made}
        if any(s is not own and s in made for s in storages):
            return False
    return True
