"""Objects that a native program returns: arrays, views, numbers, tuples."""

from typing import TypeGuard

from relax_egraph.vm.native.memory import Memory
from relax_egraph.vm.native.program import (
    Op,
    Operand,
)
from relax_egraph.vm.native.refused import Refused
from relax_egraph.vm.native.regions import Region, is_known_in
from relax_egraph.vm.native.trace import (
    Trace,
)
from relax_egraph.vm.native.values import (
    Argument,
    Carried,
    Comparison,
    Fields,
    Fixed,
    Function,
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

MOST_SLOTS = 1000
"""The most slots of a heap that a program creates for the interpreter."""


class Objects(Memory):
    """Creates the Python objects of values."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        self._field_words: dict[int, int] = {}
        self._copied: set[Owner] = set()

    def _object(self, value: Value | Owner) -> int:
        """The word with the object of `value`; creates it at first use."""
        key = value.owner if isinstance(value, Tensor) and _is_its_owner(value) else value
        key = key.itself() if isinstance(key, Storage) else key
        owner = itself(key.owner) if isinstance(key, Tensor) else key
        if owner not in self._copied and _is_in_loop(owner):
            self._copied.add(owner)
            self._copy_out(owner)
        if key not in self._objects:
            self._objects[key] = self._create(key)
        return self._objects[key]

    def _create(self, value: Value | Owner) -> int:
        match value:
            case Argument(index):
                return self._with_object(Op.ARGUMENT, self._field_words.get(index, index))
            case Fixed(index):
                return self._with_object(Op.CONSTANT, -1 if index is None else index)
            case Prim(number):
                return self._with_object(Op.NUMBER, self.word(number))
            case Shape(extents):
                numbers = [self._object(Prim(extent)) for extent in extents]
                return self._with_object(Op.TUPLE, *numbers)
            case Fields(values):
                return self._with_object(Op.TUPLE, *map(self._object, values))
            case Heap(argument=Argument() as argument):
                return self._object(argument)
            case Heap(lost=lost) if lost:
                raise Refused("dimensions with different values after a branch")
            case Heap(slots=slots, size=size):
                if size > MOST_SLOTS:
                    raise Refused(f"a heap of {size} slots as a value")
                numbers = [self._object(Prim(slots.get(k, 0))) for k in range(size)]
                return self._with_object(Op.LIST, *numbers)
            case Tensor(owner=owner, dtype=dtype, shape=shape):
                assert shape is not None
                base = self._object(itself(owner))
                address = self._address(value)
                return self._with_object(Op.VIEW, base, dtype, address, *map(self.word, shape))
            case Truth(of=Tensor() as tensor):
                return self._with_object(Op.TRUTH, self._address(tensor))
            case Truth() | Comparison() | Storage():
                raise Refused("a truth of dimensions as a value")
            case Function():
                raise Refused("a function as a value")
            case Carried():
                raise AssertionError

    def _with_object(self, op: Op, *operands: Operand) -> int:
        place = self.new_object()
        self.emit(op, place, *operands)
        return place


def is_late(value: Value, root: Region) -> bool:
    """Whether `value` is known only after `root`."""
    match value:
        case Fields(values):
            return any(is_late(v, root) for v in values)
        case Truth():
            return True
        case Prim(number):
            return not is_known_in(number, root)
        case Shape(extents):
            return not all(is_known_in(extent, root) for extent in extents)
        case Tensor(owner=owner, shape=shape):
            is_made_late = isinstance(owner, Carried) or _is_made_late(owner, root)
            return is_made_late or not all(is_known_in(extent, root) for extent in shape or ())
        case Heap(slots=slots):
            return not all(is_known_in(number, root) for number in slots.values())
        case _:
            return _is_made_late(value, root)


def _is_made_late(owner: Value | Owner, root: Region) -> bool:
    return isinstance(owner, Storage) and owner.itself().region is not root


def _is_in_loop(owner: Value | Owner) -> TypeGuard[Storage | Carried]:
    """Whether the next turn may overwrite or move the contents of `owner`."""
    return isinstance(owner, Carried) or (
        isinstance(owner, Storage) and owner.region.loop is not None
    )


def _is_its_owner(tensor: Tensor) -> bool:
    """Whether the object is the argument or constant itself, not a view."""
    return not tensor.view and isinstance(tensor.owner, Argument | Fixed)
