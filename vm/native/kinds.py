"""What values are taken for while bytecode is traced, and what has to hold of them.

An argument becomes what the first instruction takes it for; the driver checks that it is that.
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
"""Fields of a tuple that is given, at most."""

MOST_AXES = 64
"""Axes of an array of numpy at most."""


class Kinds:
    """Writes into a `Trace` what is asked of values; `made` are the storages on the path so far."""

    def __init__(self, num_arguments: int) -> None:
        self._num_given = num_arguments
        self._opened: dict[int, Value] = {}
        self.trace = Trace(Numbers(), {})
        self.made: set[Storage] = set()
        self._heaps: dict[int, Heap] = {}
        self._stores: Counter[Owner] = Counter()
        self._read: dict[int, tuple[Truth, int]] = {}

    # --- tuples that are given ---------------------------------------------------------

    def opened(self, value: Value) -> Value:
        """`value`, of an argument that is known to be a tuple its fields."""
        return self._opened.get(value.index, value) if isinstance(value, Argument) else value

    def open_tuple(self, value: Value, count: int) -> None:
        """Take an argument for a tuple of so many fields, which are arguments, too."""
        if isinstance(value, Argument):
            self._opened[value.index] = Fields(self._fields(value, count))

    def open_shape(self, value: Value, rank: int) -> None:
        """Take an argument for a tuple of so many integers."""
        if isinstance(value, Argument):
            extents = map(self.number, self._fields(value, rank))
            self._opened[value.index] = Shape(tuple(extents))

    def _fields(self, argument: Argument, count: int) -> tuple[Argument, ...]:
        use = self.use(argument)
        if use != ArgumentUse() or type(count) is not int or not 0 <= count <= MOST_FIELDS:
            raise Refused(f"argument {argument.index} as a tuple")
        use.fields = tuple(range(self._num_given, self._num_given + count))
        self._num_given += count
        return tuple(map(Argument, use.fields))

    # --- values -----------------------------------------------------------------------

    def use(self, argument: Argument) -> ArgumentUse:
        """What is known of `argument`."""
        return self.trace.arguments.setdefault(argument.index, ArgumentUse())

    def tensor(self, value: Value, dtype: str | None = None) -> Tensor:
        """`value` as a tensor, of `dtype` if it is said."""
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
        """The extents of a tensor, which has to be of `rank`."""
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
            return self.trace.numbers.given("integer", value.index)
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
            if self._heaps and value.index not in self._heaps:  # stores into one: seen in both
                raise Refused("several heaps, which may be one")
            if not self._heaps:
                self._heaps[value.index] = Heap({}, MAX_HEAP, value)
                self.trace.heaps.append(self._heaps[value.index])
            return self._heaps[value.index]
        if not isinstance(value, Heap):
            raise Refused("a heap is needed")
        return value

    def load(self, heap: Heap, slot: int) -> Number:
        """What is in `slot`."""
        self._within(heap, slot)
        if slot in heap.lost:
            raise Refused("a dimension that is one or another, after a branch")
        if slot not in heap.slots:
            given = heap.given
            heap.slots[slot] = self.trace.numbers.given("item", given.index, slot) if given else 0
        return heap.slots[slot]

    def store(self, heap: Heap, slot: int, number: Number) -> None:
        """Put `number` into `slot`."""
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
        return tuple(self.trace.numbers.given("extent", index, axis) for axis in range(rank))

    def storage(self, size: Number) -> Storage:
        """New bytes."""
        self.at_most(0, size)
        made = Storage(size, self.trace.region)
        self.made.add(made)
        return made

    def size(self, shape: Sequence[Number], dtype: str) -> Number:
        """The bytes of a tensor."""
        return self.trace.numbers.product((*shape, np.dtype(dtype).itemsize))

    def has_read(self, value: Value) -> Value:
        """`value`; remembers of what is in a tensor when it was asked for."""
        if isinstance(value, Truth) and isinstance(value.of, Tensor):
            self._read[id(value)] = value, self._stores[itself(value.of.owner)]
        return value

    def known(self, value: Value) -> Value:
        """`value`; a condition is read only where it decides, so that its tensor has to last."""
        if isinstance(value, Truth) and isinstance(value.of, Tensor):
            _, stores = self._read[id(value)]
            if self._stores[itself(value.of.owner)] != stores:
                raise Refused("a condition of which the tensor has been overwritten")
        if isinstance(value, Fields):
            for field in value.values:
                self.known(field)
        return value

    # --- what must hold ---------------------------------------------------------------

    def write(self, tensor: Tensor) -> None:
        """Some kernel writes `tensor`."""
        self._stores[itself(tensor.owner)] += 1
        match tensor.owner:
            case Argument() as argument:
                self.use(argument).writable = True
            case Fixed():
                raise Refused("a constant is written")
            case Carried():
                raise Refused("a store into what a turn of a loop is given")
            case Storage():
                pass

    def equal(self, a: Number, b: Number) -> None:
        """Check that two numbers are the same."""
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
