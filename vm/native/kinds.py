"""Kinds of values during tracing, and the checks that establish them.

The first instruction that uses an argument determines its kind; the driver checks it.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from relax_egraph.vm.builtins import MAX_HEAP
from relax_egraph.vm.native.numbers import Number, Numbers, is_at_most
from relax_egraph.vm.native.refused import Refused
from relax_egraph.vm.native.regions import Check
from relax_egraph.vm.native.trace import ArgumentUse, Trace
from relax_egraph.vm.native.values import (
    Argument,
    Carried,
    Fields,
    Fixed,
    Heap,
    Owner,
    Prim,
    Shape,
    Storage,
    Tensor,
    Truth,
    Value,
    itself,
)

MOST_FIELDS = 10_000
"""The most fields of a tuple argument."""

MOST_AXES = 64
"""The highest rank of a numpy array."""


class Kinds:
    """Records uses of values in a `Trace`; `allocated` are the storages on the path so far."""

    def __init__(self, num_arguments: int) -> None:
        self._num_arguments = num_arguments
        self._opened: dict[int, Value] = {}
        self.trace = Trace(Numbers(), {})
        self.allocated: set[Storage] = set()
        self._heaps: dict[int, Heap] = {}
        self._stores: Counter[Owner] = Counter()
        self._read: dict[int, tuple[Truth, int]] = {}

    # --- tuple arguments ---------------------------------------------------------------

    def opened(self, value: Value) -> Value:
        """`value`; for an argument that is known to be a tuple, its fields."""
        return self._opened.get(value.index, value) if isinstance(value, Argument) else value

    def open_tuple(self, value: Value, count: int) -> None:
        """Treat an argument as a tuple of `count` fields, which are arguments, too."""
        if isinstance(value, Argument):
            self._opened[value.index] = Fields(self._fields(value, count))

    def open_shape(self, value: Value, rank: int) -> None:
        """Treat an argument as a tuple of `rank` integers."""
        if isinstance(value, Argument):
            extents = map(self.number, self._fields(value, rank))
            self._opened[value.index] = Shape(tuple(extents))

    def _fields(self, argument: Argument, count: int) -> tuple[Argument, ...]:
        use = self.use(argument)
        if use != ArgumentUse() or type(count) is not int or not 0 <= count <= MOST_FIELDS:
            raise Refused(f"argument {argument.index} as a tuple")
        use.fields = tuple(range(self._num_arguments, self._num_arguments + count))
        self._num_arguments += count
        return tuple(map(Argument, use.fields))

    # --- values -----------------------------------------------------------------------

    def use(self, argument: Argument) -> ArgumentUse:
        """The requirements on `argument` so far."""
        return self.trace.arguments.setdefault(argument.index, ArgumentUse())

    def tensor(self, value: Value, dtype: str | None = None) -> Tensor:
        """`value` as a tensor, of `dtype` if it is not ``None``."""
        if isinstance(value, Argument):
            use = self.use(value)
            if (
                use.is_integer
                or use.is_heap
                or use.fields is not None
                or (use.dtype or dtype) is None
            ):
                raise Refused(f"argument {value.index} as a tensor")
            use.dtype = use.dtype or dtype
            assert use.dtype is not None
            value = Tensor(value, use.dtype, self._extents(value.index, use.rank))
        if not isinstance(value, Tensor):
            raise Refused("a tensor is needed")
        if dtype is not None and value.dtype != dtype:
            raise Refused(f"a tensor of {value.dtype}, needs {dtype}")
        return value

    def shaped(self, value: Value) -> tuple[Number, ...]:
        """The extents of a tensor."""
        shape = self.tensor(value).shape
        if shape is None:
            raise Refused("a tensor of unknown rank")
        return shape

    def ranked(self, value: Value, rank: int) -> tuple[Number, ...]:
        """The extents of a tensor, which must have `rank`."""
        if isinstance(value, Argument):
            use = self.use(value)
            use.rank = rank if use.rank is None else use.rank
        shape = self.shaped(value)
        if len(shape) != rank:
            raise Refused(f"a tensor of rank {len(shape)}, needs {rank}")
        return shape

    def number(self, value: Value) -> Number:
        """`value` as an integer."""
        if isinstance(value, Argument):
            use = self.use(value)
            if use.dtype or use.is_heap or use.fields is not None:
                raise Refused(f"argument {value.index} as an integer")
            use.is_integer = True
            return self.trace.numbers.argument("integer", value.index)
        if not isinstance(value, Prim):
            raise Refused("an integer is needed")
        return value.number

    def heap(self, value: Value) -> Heap:
        """`value` as a heap of dimensions."""
        if isinstance(value, Argument):
            use = self.use(value)
            if use.dtype or use.is_integer or use.fields is not None:
                raise Refused(f"argument {value.index} as a heap")
            use.is_heap = True
            if self._heaps and value.index not in self._heaps:  # a store may alias
                raise Refused("several heaps, which may be one")
            if not self._heaps:
                self._heaps[value.index] = Heap({}, MAX_HEAP, value)
                self.trace.heaps.append(self._heaps[value.index])
            return self._heaps[value.index]
        if not isinstance(value, Heap):
            raise Refused("a heap is needed")
        return value

    def load(self, heap: Heap, slot: int) -> Number:
        """The number in `slot`."""
        self._within(heap, slot)
        if slot in heap.lost:
            raise Refused("a dimension with different values after a branch")
        if slot not in heap.slots:
            source, numbers = heap.argument, self.trace.numbers
            heap.slots[slot] = numbers.argument("item", source.index, slot) if source else 0
        return heap.slots[slot]

    def store(self, heap: Heap, slot: int, number: Number) -> None:
        """Store `number` into `slot`."""
        self._within(heap, slot)
        heap.slots[slot] = number
        heap.written.add(slot)
        heap.lost.discard(slot)

    def _within(self, heap: Heap, slot: int) -> None:
        if type(slot) is not int or not 0 <= slot < heap.size:
            raise Refused(f"slot {slot} of a heap of {heap.size}")

    def _extents(self, index: int, rank: int | None) -> tuple[Number, ...] | None:
        if rank is None:
            return None
        if rank > MOST_AXES:
            raise Refused(f"an array of {rank} dimensions")
        return tuple(self.trace.numbers.argument("extent", index, axis) for axis in range(rank))

    def storage(self, size: Number) -> Storage:
        """A new storage of `size` bytes."""
        self.at_most(0, size)
        storage = Storage(size, self.trace.region)
        self.allocated.add(storage)
        return storage

    def size(self, shape: Sequence[Number], dtype: str) -> Number:
        """The bytes of a tensor."""
        return self.trace.numbers.product((*shape, np.dtype(dtype).itemsize))

    def has_read(self, value: Value) -> Value:
        """`value`; records when the contents of its tensor were read."""
        if isinstance(value, Truth) and isinstance(value.of, Tensor):
            self._read[id(value)] = value, self._stores[itself(value.of.owner)]
        return value

    def known(self, value: Value) -> Value:
        """`value`; a condition is read where it decides, so its tensor must still be valid."""
        if isinstance(value, Truth) and isinstance(value.of, Tensor):
            _, stores = self._read[id(value)]
            if self._stores[itself(value.of.owner)] != stores:
                raise Refused("a condition whose tensor has been overwritten")
        if isinstance(value, Fields):
            for field in value.values:
                self.known(field)
        return value

    # --- checks -----------------------------------------------------------------------

    def write(self, tensor: Tensor) -> None:
        """Record that a kernel writes `tensor`."""
        self._stores[itself(tensor.owner)] += 1
        match tensor.owner:
            case Argument() as argument:
                self.use(argument).writable = True
            case Fixed():
                raise Refused("a constant is written")
            case Carried():
                raise Refused("a store into a loop-carried tensor")
            case Storage():
                pass

    def equal(self, a: Number, b: Number) -> None:
        """Check that two numbers are equal, unless it is proven."""
        if a == b:
            return
        if isinstance(a, int) and isinstance(b, int):
            raise Refused(f"{a} is not {b}")
        self.trace.region.checks.append(Check("equal", a, b))

    def at_most(self, a: Number, b: Number) -> None:
        """Check that ``a ≤ b``, unless it is proven."""
        if (isinstance(a, int) and isinstance(b, int) and a <= b) or is_at_most(a, b):
            return
        if isinstance(a, int) and isinstance(b, int):
            raise Refused(f"{a} is more than {b}")
        self.trace.region.checks.append(Check("at most", a, b))
