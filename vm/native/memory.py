"""Memory of the tensors of a native program: arenas, and returned objects.

Kernels write returned tensors directly into the returned objects.  Only results of loops are copied
at the end, because the turn that computes them is not known before.
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
    """Assigns words with addresses to storages and loop-carried tensors."""

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
        """The storages in arenas; results of loops are copied at the end."""
        return {
            owner
            for owner in self._tensors
            if isinstance(owner, Storage)
            and (owner.region.loop is not None or owner not in self._escaping)
        }

    def _memory(self, region: Region) -> None:
        """Place each storage of a region in an arena, or in a returned object."""
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
        """Create the object that owns the bytes of `owner`: a tensor, or a storage of several.

        Returns the word with its address.
        """
        address, new = self.new_word(), self.new_object()
        match tensors:
            case [Tensor(shape=shape, offset=0) as tensor] if shape is not None and (
                self._is_all_of(tensor, owner, size)
            ):
                extents = [self.word(extent) for extent in shape]
                word = self.word(self._size(tensor))
                self._objects[tensor] = new
                self.emit(Op.RESULT, new, address, tensor.dtype, word, *extents)
            case _:
                self._objects[owner] = new
                self.emit(Op.STORAGE, new, address, self.word(size))
        return address

    def _is_all_of(self, tensor: Tensor, owner: Owner, size: Number) -> bool:
        """Whether `tensor` covers all `size` bytes of `owner`."""
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
        """Create an object with a copy of the bytes of `owner`, which lie in an arena."""
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

    # --- loop-carried tensors ---------------------------------------------------------

    def _base(self, carried: Carried) -> int:
        if carried not in self._bases:
            self._bases[carried] = self.new_word()
        return self._bases[carried]

    def _flag(self, carried: Carried) -> int:
        """The word that states whether the tensor is an object from outside."""
        if carried not in self._flags:
            self._flags[carried] = self.new_word()
        return self._flags[carried]

    def _flag_of(self, to: Carried, owner: Owner) -> int:
        """The word that states whether the next value of `to` is an object from outside."""
        match owner:
            case Carried(loop=loop) if loop is to.loop or owner not in self._escaping:
                return self._flag(owner)
            case Storage():
                return self.constant(int(owner.itself() in self._escaping))
            case _:
                return self.constant(1)


def _escaping(results: Sequence[Value]) -> dict[Owner, list[Tensor | Storage]]:
    """The escaping storages and loop-carried tensors, with the escaping values in each."""
    escaping: dict[Owner, dict[Tensor | Storage, None]] = {}
    for value in parts_of(results):
        match value:
            case Tensor(owner=Storage() | Carried() as owner):
                escaping.setdefault(itself(owner), {})[value] = None
            case Storage():
                escaping.setdefault(value.itself(), {})[value.itself()] = None
            case _:
                pass
    return {owner: list(leaving) for owner, leaving in escaping.items()}


def _tensors(trace: Trace) -> dict[Owner, set[Tensor]]:
    """The tensors that steps read and write, by owner."""
    tensors = defaultdict[Owner, set[Tensor]](set)
    for _, step in trace.steps:
        for tensor in tensors_of(step):
            tensors[itself(tensor.owner)].add(tensor)
    return tensors


def _flagged(escaping: Iterable[Owner]) -> set[Carried]:
    """The loop-carried tensors that escape, or may become an escaping one."""
    flagged: set[Carried] = set()
    pending = list(escaping)
    while pending:
        owner = pending.pop()
        if isinstance(owner, Carried) and owner not in flagged:
            flagged.add(owner)
            pending += owner.origins
    return flagged


def _itemsize(dtype: str) -> int:
    return np.dtype(dtype).itemsize
