"""Where temporary storages lie: those that are not needed at the same time share a place.

A scan over the steps in order.  Jumps lead forward but those of loops, and what a loop uses of
storages from before it is needed in all of its turns.  A storage takes a free place that is
proven to be large enough, else one that is proven to be smaller, which grows, else a new place.

Each region has places of its own; what a turn of a loop gives to the next is not overwritten by
that, for regions in loops have two arenas, and use them in turn.
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
    """A part of the arena; its size is the largest of the storages that lie in it."""

    size: Number


def places_of(trace: Trace, storages: Collection[Storage]) -> dict[Region, dict[Storage, Place]]:
    """The place of each of `storages` that some step uses, by region."""
    first, last = _lifetimes(trace, storages)
    begin: dict[int, list[Storage]] = {}
    for storage, at in first.items():
        begin.setdefault(at, []).append(storage)
    found: dict[Region, dict[Storage, Place]] = {}
    free: dict[Region, list[Place]] = {}
    ending: dict[int, list[Storage]] = {}
    for at in sorted({*begin, *last.values()}):
        for storage in begin.get(at, ()):
            places = free.setdefault(storage.region, [])
            found.setdefault(storage.region, {})[storage] = _taken(places, storage.size)
            ending.setdefault(last[storage], []).append(storage)
        for storage in ending.get(at, ()):
            free[storage.region].append(found[storage.region][storage])
    return found


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
    """The storages that `tensors` are in, each once."""
    found: dict[Storage, None] = {}
    seen: set[Carried] = set()
    for tensor in tensors:
        found.update(dict.fromkeys(_storages(tensor.owner, seen)))
    return list(found)


def _storages(owner: Owner, seen: set[Carried]) -> Iterator[Storage]:
    """Where the elements may be; of what a loop carries, what was given to its turns."""
    match owner:
        case Storage():
            yield owner.itself()
        case Carried(loop=loop, given=given) if owner not in seen:
            seen.add(owner)
            for tensor in given:
                for storage in _storages(tensor.owner, seen):
                    if not storage.region.is_in(loop):
                        yield storage
        case _:
            pass


def _taken(free: list[Place], size: Number) -> Place:
    """A place for `size` bytes, no longer free."""
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
