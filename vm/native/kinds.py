"""What values are taken for while bytecode is traced, and what has to hold of them.

An argument becomes what the first instruction takes it for; the driver checks that it is that.
"""

from relax_egraph.vm.builtins import MAX_HEAP
from relax_egraph.vm.native.numbers import Number, Numbers, is_at_most
from relax_egraph.vm.native.refused import Refused
from relax_egraph.vm.native.trace import ArgumentUse, Check, Trace
from relax_egraph.vm.native.values import Argument, Fixed, Heap, Prim, Storage, Tensor, Value


class Kinds:
    """Writes into a `Trace` what is asked of values; `made` are the storages on the path so far."""

    def __init__(self) -> None:
        self.trace = Trace(Numbers(), {})
        self.made: set[Storage] = set()
        self._heaps: dict[int, Heap] = {}

    # --- values -----------------------------------------------------------------------

    def use(self, argument: Argument) -> ArgumentUse:
        """What is known of `argument`."""
        return self.trace.arguments.setdefault(argument.index, ArgumentUse())

    def tensor(self, value: Value, dtype: str | None = None) -> Tensor:
        """`value` as a tensor, of `dtype` if it is said."""
        if isinstance(value, Argument):
            use = self.use(value)
            if use.is_integer or use.is_heap or (use.dtype or dtype) is None:
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
            if use.dtype or use.is_heap:
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
            if use.dtype or use.is_integer:
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
        return tuple(self.trace.numbers.given("extent", index, axis) for axis in range(rank))

    def storage(self, size: Number) -> Storage:
        """New bytes."""
        self.at_most(0, size)
        made = Storage(size)
        self.made.add(made)
        return made

    # --- what must hold ---------------------------------------------------------------

    def write(self, tensor: Tensor) -> None:
        """Some kernel writes `tensor`."""
        match tensor.owner:
            case Argument() as argument:
                self.use(argument).writable = True
            case Fixed():
                raise Refused("a constant is written")
            case Storage():
                pass

    def equal(self, a: Number, b: Number) -> None:
        """Check that two numbers are the same."""
        if a == b:
            return
        if isinstance(a, int) and isinstance(b, int):
            raise Refused(f"{a} is not {b}")
        self.trace.checks.append(Check("equal", a, b))

    def at_most(self, a: Number, b: Number) -> None:
        """Check that ``a ≤ b``, unless it is proven."""
        if (isinstance(a, int) and isinstance(b, int) and a <= b) or is_at_most(a, b):
            return
        if isinstance(a, int) and isinstance(b, int):
            raise Refused(f"{a} is more than {b}")
        self.trace.checks.append(Check("at most", a, b))
