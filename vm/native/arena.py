"""Placement of temporary storages in arenas: storages with disjoint lifetimes share a place.

A scan over the steps in order (linear scan).  Only loops jump back, and a storage from before a
loop that the loop uses is needed in all its turns.  A storage gets a free place that is proven to
be large enough, else one that is proven to be smaller, which grows, else a new place.

Each region has its own places.  Regions in loops alternate between two arenas, so a turn does not
overwrite the values that it gets from the one before.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

from relax_egraph.vm.native.numbers import Number, is_at_most
from relax_egraph.vm.native.regions import Loop, Region
from relax_egraph.vm.native.trace import Trace, tensors_in, tensors_of
from relax_egraph.vm.native.values import Carried, Owner, Storage, Tensor


@dataclass(slots=True, eq=False)
class Place:
    """A part of the arena; its size is that of the largest storage in it."""

    size: Number


def places_of(trace: Trace, storages: Collection[Storage]) -> dict[Region, dict[Storage, Place]]:
    """The places of `storages` that some step uses, by region."""
    first, last = _lifetimes(trace, storages)
    begin: dict[int, list[Storage]] = {}
    for storage, at in first.items():
        begin.setdefault(at, []).append(storage)
    places: dict[Region, dict[Storage, Place]] = {}
    free: dict[Region, list[Place]] = {}
    ending: dict[int, list[Storage]] = {}
    for at in sorted({*begin, *last.values()}):
        for storage in begin.get(at, ()):
            place = _take(free.setdefault(storage.region, []), storage.size)
            places.setdefault(storage.region, {})[storage] = place
            ending.setdefault(last[storage], []).append(storage)
        for storage in ending.get(at, ()):
            free[storage.region].append(places[storage.region][storage])
    return places


def _lifetimes(
    trace: Trace, storages: Collection[Storage]
) -> tuple[dict[Storage, int], dict[Storage, int]]:
    """The first and the last step that needs each of `storages`."""
    first: dict[Storage, int] = {}
    last: dict[Storage, int] = {}
    loops = sorted(trace.loops, key=lambda loop: loop.first)
    inside: list[Loop] = []
    for at, (_, step) in enumerate(trace.steps):
        while loops and loops[0].first <= at:
            inside.append(loops.pop(0))
        inside = [loop for loop in inside if at < loop.last]
        for storage in _used(tensors_of(step)):
            if storage in storages:
                around = next((o for o in inside if not storage.region.is_in(o)), None)
                begin, end = (around.first, around.last) if around else (at, at)
                first[storage] = min(first.get(storage, begin), begin)
                last[storage] = max(last.get(storage, end), end)
    for storage in _used(list(tensors_in(trace.results))):
        if storage in first:
            last[storage] = len(trace.steps)
    return first, last


def _used(tensors: Sequence[Tensor]) -> list[Storage]:
    """The distinct storages of `tensors`."""
    storages: dict[Storage, None] = {}
    seen: set[Carried] = set()
    for tensor in tensors:
        storages.update(dict.fromkeys(_storages(tensor.owner, seen)))
    return list(storages)


def _storages(owner: Owner, seen: set[Carried]) -> Iterator[Storage]:
    """The storages that the elements may lie in; for a carried tensor, those of all its values."""
    match owner:
        case Storage():
            yield owner.itself()
        case Carried(loop=loop, incoming=incoming) if owner not in seen:
            seen.add(owner)
            for tensor in incoming:
                for storage in _storages(tensor.owner, seen):
                    if not storage.region.is_in(loop):
                        yield storage
        case _:
            pass


def _take(free: list[Place], size: Number) -> Place:
    """Take a place for `size` bytes from the free ones, or a new one."""
    large = [place for place in free if is_at_most(size, place.size)]
    small = [place for place in free if is_at_most(place.size, size)]
    if large:
        chosen = reduce(lambda a, b: b if is_at_most(b.size, a.size) else a, large)
    elif small:
        chosen = reduce(lambda a, b: b if is_at_most(a.size, b.size) else a, small)
        chosen.size = size
    else:
        return Place(size)
    free.remove(chosen)
    return chosen
