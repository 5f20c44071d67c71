"""Where the tensors of a native program lie: arenas, and objects that are returned.

What leaves the program is written by kernels where it will be.  Only what a loop has made is copied
at its end: which of its turns makes it is not known before.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from relax_egraph.vm.native.arena import places_of
from relax_egraph.vm.native.numbers import Number
from relax_egraph.vm.native.program import (
    Address,
    Op,
)
from relax_egraph.vm.native.refused import Refused
from relax_egraph.vm.native.regions import Region
from relax_egraph.vm.native.trace import (
    Trace,
    parts_of,
    tensors_of,
)
from relax_egraph.vm.native.values import (
    Carried,
    Fixed,
    Owner,
    Storage,
    Tensor,
    Value,
    itself,
)
from relax_egraph.vm.native.words import Words


class Memory(Words):
    """Gives storages, and what loops carry, words with their addresses."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self._trace = trace
        self._bases: dict[Owner, int] = {}
        self._flags: dict[Carried, int] = {}
        self._objects: dict[Value | Owner, int] = {}
        self._num_arenas = 0
        self._escaping = _escaping(trace.results)
        self._tensors = _tensors(trace)
        self._flagged = _flagged(self._escaping)
        self._places = places_of(trace, self._temporary())

    def _temporary(self) -> set[Storage]:
        """The storages that are in an arena: what is returned from loops is copied at the end."""
        return {
            owner
            for owner in self._tensors
            if isinstance(owner, Storage)
            and (owner.region.loop is not None or owner not in self._escaping)
        }

    def _memory(self, region: Region) -> None:
        """Give each storage of a region a place: in an arena, or in an object that is returned."""
        is_first = region is self._trace.root
        escaping = [
            (owner, tensors)
            for owner, tensors in self._escaping.items()
            if isinstance(owner, Storage) and owner.region is region and region.loop is None
        ]
        if escaping and not is_first:
            self.emit(Op.ACQUIRE)
        for storage, tensors in escaping:
            self._bases[storage] = self._escape(storage, tensors, storage.size)
        if escaping and not is_first:
            self.emit(Op.RELEASE)
        places = self._places.get(region)
        if not places:
            return
        numbers = self._trace.numbers
        offsets: dict[int, Number] = {}
        end: Number = 0
        for place in places.values():
            if id(place) not in offsets:
                offsets[id(place)] = end
                end = numbers.add(end, numbers.align(place.size))
        size, arena = self.word(end), self.new_word()
        self.emit(Op.NEXT_ARENA if region.loop else Op.ARENA, arena, self._num_arenas, size)
        self._num_arenas += 2 if region.loop else 1
        for storage, place in places.items():
            self._bases[storage] = self.at(arena, offsets[id(place)])

    def _escape(self, owner: Owner, tensors: Sequence[Tensor | Storage], size: Number) -> int:
        """Make the object that has the bytes of `owner`: its only tensor, or all of them.

        It is the word with its address.
        """
        address, made = self.new_word(), self.new_object()
        match tensors:
            case [Tensor(shape=shape, offset=0) as tensor] if shape is not None and (
                self._is_all_of(tensor, owner, size)
            ):
                extents = [self.word(extent) for extent in shape]
                word = self.word(self._size(tensor))
                self._objects[tensor] = made
                self.emit(Op.RESULT, made, address, tensor.dtype, word, *extents)
            case _:
                self._objects[owner] = made
                self.emit(Op.STORAGE, made, address, self.word(size))
        return address

    def _is_all_of(self, tensor: Tensor, owner: Owner, size: Number) -> bool:
        """Whether nothing lies beyond `tensor` in `owner`, which has `size` bytes."""
        needed = self._size(tensor)
        return needed == size or all(
            t.offset == 0 and t.shape is not None and self._size(t) == needed
            for t in self._tensors.get(owner, ())
        )

    def _size(self, tensor: Tensor) -> Number:
        """The bytes of a tensor of known rank."""
        assert tensor.shape is not None
        return self._trace.numbers.product((*tensor.shape, _itemsize(tensor.dtype)))

    def _copy_out(self, owner: Storage | Carried) -> None:
        """Make the object that has the bytes of `owner`, which lie in an arena."""
        tensors = self._escaping[owner]
        tensor = tensors[0]
        if isinstance(tensor, Tensor) and isinstance(owner, Carried):
            self.emit(Op.EQUAL, self._flag(owner), self.constant(0))
            size = self._size(tensor)
        else:
            assert isinstance(owner, Storage)
            size = owner.size
        address = self._escape(owner, tensors, size)
        if owner in self._bases:
            if tensor in self._objects and isinstance(tensor, Tensor):
                size = self._size(tensor)
            self.emit(Op.COPY, address, self._bases[owner], self.word(size))
        self._bases[owner] = address

    def _address(self, tensor: Tensor) -> int:
        """The word with the address of the first element."""
        owner = itself(tensor.owner)
        if isinstance(owner, Carried):
            return self.at(self._base(owner), tensor.offset)
        if owner not in self._bases:
            if not isinstance(owner, Fixed) or owner.index is None:
                raise Refused("elements that nothing has written")
            self._bases[owner] = self.constant(Address(owner.index))
        return self.at(self._bases[owner], tensor.offset)

    # --- what a loop carries ----------------------------------------------------------

    def _base(self, carried: Carried) -> int:
        if carried not in self._bases:
            self._bases[carried] = self.new_word()
        return self._bases[carried]

    def _flag(self, carried: Carried) -> int:
        """The word that says whether the tensor is also something else outside."""
        if carried not in self._flags:
            self._flags[carried] = self.new_word()
        return self._flags[carried]

    def _flag_of(self, to: Carried, owner: Owner) -> int:
        """The word that says whether what `to` becomes is also something else outside."""
        match owner:
            case Carried(loop=loop) if loop is to.loop or owner not in self._escaping:
                return self._flag(owner)
            case Storage():
                return self.constant(int(owner.itself() in self._escaping))
            case _:
                return self.constant(1)


def _escaping(results: Sequence[Value]) -> dict[Owner, list[Tensor | Storage]]:
    """The storages, and what loops carry, that leave the program; with what leaves of each."""
    found: dict[Owner, dict[Tensor | Storage, None]] = {}
    for value in parts_of(results):
        match value:
            case Tensor(owner=Storage() | Carried() as owner):
                found.setdefault(itself(owner), {})[value] = None
            case Storage():
                found.setdefault(value.itself(), {})[value.itself()] = None
            case _:
                pass
    return {owner: list(leaving) for owner, leaving in found.items()}


def _tensors(trace: Trace) -> dict[Owner, set[Tensor]]:
    """What steps read and write, by where it is."""
    found = defaultdict[Owner, set[Tensor]](set)
    for _, step in trace.steps:
        for tensor in tensors_of(step):
            found[itself(tensor.owner)].add(tensor)
    return found


def _flagged(escaping: Iterable[Owner]) -> set[Carried]:
    """What loops carry that leaves the program, or may become what does."""
    found: set[Carried] = set()
    pending = list(escaping)
    while pending:
        owner = pending.pop()
        if isinstance(owner, Carried) and owner not in found:
            found.add(owner)
            pending += owner.origins
    return found


def _itemsize(dtype: str) -> int:
    return np.dtype(dtype).itemsize
