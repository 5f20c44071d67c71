"""Loop-carried values: a fixpoint over the turns of a loop.

A loop is first traced as if all values were invariant.  A value that changes from one turn to the
next becomes loop-carried, and the loop is traced again, until only carried values change.  A
carried value has one kind in all turns: a tensor of one dtype and rank, with varying memory and
extents; an integer; a shape; a tuple of these.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from relax_egraph.vm.native.kinds import Kinds
from relax_egraph.vm.native.numbers import Computed, Number, may_be_negative
from relax_egraph.vm.native.refused import Refused
from relax_egraph.vm.native.regions import Loop
from relax_egraph.vm.native.trace import Carry
from relax_egraph.vm.native.values import (
    Argument,
    Carried,
    Fields,
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

Leaf: TypeAlias = tuple[Computed, Number] | tuple[Carried, Tensor]
"""A carried number or tensor, and its value in the next turn."""


class Head:
    """The registers at the start of a turn of `loop`: `initial` at first, widened to `values`."""

    def __init__(self, kinds: Kinds, loop: Loop, initial: dict[int, Value]) -> None:
        heaps = [id(v) for v in initial.values() if isinstance(v, Heap)]
        if len(set(heaps)) < len(heaps) or any(
            isinstance(v, Fields) and has_heap(v) for v in initial.values()
        ):
            raise Refused("a heap that has two names, in a loop")
        if any(isinstance(v, Truth) for v in initial.values()):
            raise Refused("a condition that was read before a loop")
        self._kinds = kinds
        self._loop = loop
        self.initial = initial
        self.values = initial
        self._own: set[Computed] = set()

    def widen(self, following: dict[int, Value]) -> bool:
        """Widen `values` to include `following`, of the next turn; return whether they changed."""
        wider = {r: self._meet(v, following.get(r)) for r, v in self.values.items()}
        is_new = any(wider[r] is not self._kinds.opened(v) for r, v in self.values.items())
        self.values = wider
        return is_new

    def leaves(self, values: dict[int, Value]) -> list[Leaf]:
        """The carried numbers and tensors, with their values where a turn starts with `values`."""
        leaves: dict[Computed | Carried, Leaf] = {}
        for register, value in self.values.items():
            for leaf in self._leaves(value, values[register]):
                leaves[leaf[0]] = leaf
        return list(leaves.values())

    # --- the join of two turns -------------------------------------------------------

    def _meet(self, head: Value, other: Value | None) -> Value:
        """`head`, if `other` is the same; else a value that covers both."""
        head, other = self._kinds.opened(head), other and self._kinds.opened(other)
        match head, other:
            case _ if head is other:
                return head
            case Argument(), Tensor(owner=owner, view=False) if owner == head:
                return head
            case Argument(), Tensor(dtype=dtype, shape=shape) if shape is not None:
                return self._tensor(self._to_tensor(head, dtype, len(shape)), other)
            case Argument(), Argument() if head != other:
                return self._arguments(head, other)
            case Argument(), Fields(values):
                self._kinds.open_tuple(head, len(values))
                return self._meet(head, other)
            case Argument(), Shape(extents):
                self._kinds.open_shape(head, len(extents))
                return self._meet(head, other)
            case Argument(), Prim():
                return self._meet(Prim(self._kinds.number(head)), other)
            case Tensor(dtype=dtype, shape=shape), Argument() if shape is not None:
                return self._tensor(head, self._to_tensor(other, dtype, len(shape)))
            case Prim(), Argument():
                return self._meet(head, Prim(self._kinds.number(other)))
            case Tensor(), Tensor():
                return self._tensor(head, other)
            case Prim(a), Prim(b):
                number = self._number(a, b)
                return head if number is a else Prim(number)
            case Shape(extents), Shape(others) if len(extents) == len(others):
                numbers = tuple(map(self._number, extents, others))
                return head if _same(numbers, extents) else Shape(numbers)
            case Fields(values), Fields(others) if len(values) == len(others):
                fields = tuple(map(self._meet, values, others))
                return head if _same(fields, values) else Fields(fields)
            case Heap(), Heap():
                return self._heap(head, other)
            case _ if head == other:
                return head
            case _:
                raise Refused("a value whose kind changes from turn to turn")

    def _to_tensor(self, argument: Argument, dtype: str, rank: int) -> Tensor:
        self._kinds.tensor(argument, dtype)
        self._kinds.ranked(argument, rank)
        return self._kinds.tensor(argument, dtype)

    def _arguments(self, head: Argument, other: Argument) -> Value:
        """Two arguments of one kind, which is known if the loop uses one of them."""
        for use in (self._kinds.use(head), self._kinds.use(other)):
            if use.dtype is not None and use.rank is not None:
                first, second = (self._to_tensor(a, use.dtype, use.rank) for a in (head, other))
                return self._tensor(first, second)
            if use.is_integer:
                first, second = map(self._kinds.number, (head, other))
                return Prim(self._number(first, second))
        raise Refused("an argument that changes from turn to turn")

    def _tensor(self, head: Tensor, other: Tensor) -> Tensor:
        if head.shape is None or other.shape is None or len(head.shape) != len(other.shape):
            raise Refused("a tensor whose rank changes from turn to turn")
        if head.dtype != other.dtype:
            raise Refused("a tensor whose dtype changes from turn to turn")
        shape = tuple(map(self._number, head.shape, other.shape))
        if isinstance(head.owner, Carried) and head.owner.loop is self._loop:
            return head if _same(shape, head.shape) else Tensor(head.owner, head.dtype, shape)
        if _same(shape, head.shape) and _memory(head) == _memory(other):
            return head
        return Tensor(Carried(self._loop), head.dtype, shape)

    def _number(self, head: Number, other: Number) -> Number:
        if head == other:
            return head
        is_negative = may_be_negative(head) or may_be_negative(other)
        if head in self._own and is_negative == may_be_negative(head):
            return head
        number = self._kinds.trace.numbers.carried(is_negative=is_negative)
        self._own.add(number)
        return number

    def _heap(self, head: Heap, other: Heap) -> Heap:
        if head.size != other.size or head.argument or other.argument:
            raise Refused("a heap that is an argument, in a loop")
        slots = {
            slot: self._number(head.slots.get(slot, 0), other.slots.get(slot, 0))
            for slot in sorted({*head.slots, *other.slots})
            if slot not in head.lost
        }
        lost = head.lost | other.lost
        if lost == head.lost and all(slots[s] == head.slots.get(s, 0) for s in slots):
            return head
        return Heap({s: n for s, n in slots.items() if s not in lost}, head.size, lost=lost)

    # --- from one turn to the next ----------------------------------------------------

    def _leaves(self, head: Value, value: Value) -> Iterator[Leaf]:
        value = self._kinds.opened(value)
        match head, value:
            case Tensor(owner=owner, dtype=dtype, shape=shape), _ if shape is not None:
                tensor = value if isinstance(value, Tensor) else self._convert(value, dtype, shape)
                assert tensor.shape is not None
                if isinstance(owner, Carried) and owner.loop is self._loop:
                    yield owner, tensor
                yield from self._numbers(shape, tensor.shape)
            case Prim(number), Prim(other):
                yield from self._numbers((number,), (other,))
            case Prim(number), Argument():
                yield from self._numbers((number,), (self._kinds.number(value),))
            case Shape(extents), Shape(others):
                yield from self._numbers(extents, others)
            case Fields(values), Fields(others):
                for field, other in zip(values, others, strict=True):
                    yield from self._leaves(field, other)
            case Heap(), Heap():
                slots = sorted(head.slots)
                yield from self._numbers(
                    [head.slots[s] for s in slots], [value.slots.get(s, 0) for s in slots]
                )
            case _:
                pass

    def _convert(self, value: Value, dtype: str, shape: tuple[Number, ...]) -> Tensor:
        assert isinstance(value, Argument)
        return self._to_tensor(value, dtype, len(shape))

    def _numbers(
        self, head: "tuple[Number, ...] | list[Number]", other: "tuple[Number, ...] | list[Number]"
    ) -> Iterator[Leaf]:
        for number, becomes in zip(head, other, strict=True):
            if isinstance(number, Computed) and number in self._own:
                yield number, becomes


def has_heap(value: Value) -> bool:
    """Whether `value` is a heap, or a tuple that has one."""
    return isinstance(value, Heap) or (
        isinstance(value, Fields) and any(map(has_heap, value.values))
    )


def _memory(tensor: Tensor) -> tuple[Owner, Number, bool]:
    return itself(tensor.owner), tensor.offset, tensor.view


def _same(numbers: "tuple[object, ...]", others: "tuple[object, ...]") -> bool:
    return all(a is b or a == b for a, b in zip(numbers, others, strict=True))


def outlives(tensor: Tensor, loop: Loop) -> bool:
    """Whether the memory of `tensor` is valid in the next turn of `loop`.

    Allocations of the turn are, because turns alternate between two arenas.  Carried tensors of
    the turn are not, nor are those of inner loops.
    """
    match tensor.owner:
        case Storage() as storage:
            made_in = storage.itself().region.loop
            return made_in is loop or made_in is None or not made_in.is_within(loop)
        case Carried(loop=made_in):
            return not made_in.is_within(loop)
        case _:
            return True


def carry_step(leaves: Sequence[Leaf], copies: Mapping[Tensor, Tensor]) -> Carry:
    """The step that passes `leaves` to the next turn, with `copies` in place of some tensors."""
    numbers = [
        (to, n) for to, n in leaves if isinstance(to, Computed) and not isinstance(n, Tensor)
    ]
    tensors = [(to, t) for to, t in leaves if isinstance(to, Carried) and isinstance(t, Tensor)]
    owners = [itself(t.owner) for _, t in tensors]
    own = [o for o in owners if isinstance(o, Storage | Carried)]
    if len(set(map(id, own))) < len(own):
        raise Refused("two tensors in one storage, from turn to turn")
    for to, tensor in tensors:
        to.incoming.append(copies.get(tensor, tensor))
        to.origins.append(tensor.owner)
    return Carry(tuple(numbers), tuple((to, to.incoming[-1], t.owner) for to, t in tensors))
