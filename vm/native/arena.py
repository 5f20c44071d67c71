"""Where temporary storages lie: those that are not needed at the same time share a place.

A scan over the steps in order; they only ever jump forward.  A storage takes a free place that is
proven to be large enough, else one that is proven to be smaller, which grows, else a new place.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import reduce

from relax_egraph.vm.native.numbers import Number, is_at_most
from relax_egraph.vm.native.trace import Step, tensors_of
from relax_egraph.vm.native.values import Storage


@dataclass(slots=True, eq=False)
class Place:
    """A part of the arena; its size is the largest of the storages that lie in it."""

    size: Number


def places_of(steps: Sequence[Step], storages: Collection[Storage]) -> dict[Storage, Place]:
    """The place of each of `storages` that some step uses."""
    last: dict[Storage, int] = {}
    for at, step in enumerate(steps):
        for storage in _used(step, storages):
            last[storage] = at
    found: dict[Storage, Place] = {}
    free: list[Place] = []
    for at, step in enumerate(steps):
        used = _used(step, storages)
        for storage in used:
            if storage not in found:
                found[storage] = _taken(free, storage.size)
        free += [found[storage] for storage in used if last[storage] == at]
    return found


def _used(step: Step, storages: Collection[Storage]) -> list[Storage]:
    """Those of `storages` that `step` reads or writes, each once."""
    owners = (tensor.owner for tensor in tensors_of(step))
    used = dict.fromkeys(o.itself() for o in owners if isinstance(o, Storage))
    return [o for o in used if o in storages]


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
