"""From a trace to a native program.

First everything that may leave the call to the interpreter: arguments, numbers, checks, memory,
the objects that are returned.  Then the calls of kernels, without the interpreter's lock.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from relax_egraph.vm.native.arena import places_of
from relax_egraph.vm.native.numbers import Number
from relax_egraph.vm.native.program import (
    Address,
    NativeInstruction,
    NativeProgram,
    Op,
    Operand,
)
from relax_egraph.vm.native.refused import Refused
from relax_egraph.vm.native.trace import (
    Jump,
    KernelCall,
    Label,
    Leave,
    Step,
    Trace,
    tensors_of,
)
from relax_egraph.vm.native.values import (
    Argument,
    Comparison,
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
)
from relax_egraph.vm.native.words import Words

MOST_SLOTS = 1000
"""Slots at most of a heap that a program makes for the interpreter."""

_JUMPS = (Op.JUMP, Op.UNLESS, Op.UNLESS_AT_MOST)
"""By the number of words that decide."""


def assemble(name: str, trace: Trace, num_arguments: int, *, from_outside: bool) -> NativeProgram:
    """The program that does what `trace` says and returns its only result.

    With `from_outside` every argument that the code takes for nothing special has to be an array
    that the machine takes as it is.
    """
    return _Assembler(trace).program(name, num_arguments, from_outside=from_outside)


class _Assembler(Words):
    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self._trace = trace
        self._bases: dict[Owner, int] = {}
        self._addresses: dict[tuple[int, Number], int] = {}
        self._objects: dict[Value, int] = {}
        self._places: dict[Label, int] = {}
        self._jumps: dict[int, Label] = {}

    def program(self, name: str, num_arguments: int, *, from_outside: bool) -> NativeProgram:
        trace = self._trace
        for index in range(num_arguments):
            self._argument(index, from_outside=from_outside)
        for number in trace.numbers.made:
            if number.kind in ("floordiv", "mod"):  # they may divide by zero
                self.word(number)
        for check in trace.checks:
            op = Op.EQUAL if check.kind == "equal" else Op.AT_MOST
            self.emit(op, self.word(check.a), self.word(check.b))
        self._memory()
        (result,) = trace.results
        early = not _is_read_late(result)
        if not early and any(use.writable for use in trace.arguments.values()):
            raise Refused("a truth that is read after a store into an argument")
        made = self._object(result) if early else None
        steps = [self._prepared(step) for step in trace.steps]
        self._write_heaps()
        if steps:
            self._steps(steps)
        self.emit(Op.RETURN, self._object(result) if made is None else made)
        constants = tuple((word, value) for value, word in self.constants.items())
        for at, label in self._jumps.items():
            op, (_, *words) = self.code[at].op, self.code[at].operands
            self.code[at] = NativeInstruction(op, (self._places[label], *words))
        code = tuple(map(self.numbered, self.code))
        return NativeProgram(name, num_arguments, constants, self.num_words, self.num_objects, code)

    # --- steps ------------------------------------------------------------------------

    def _prepared(self, step: Step) -> tuple[Step, tuple[int, ...]]:
        """`step` with the words that it reads, all of which are computed before the first step."""
        match step:
            case KernelCall(arrays=arrays, integers=integers):
                return step, (*map(self._address, arrays), *map(self.word, integers))
            case Jump(unless=Truth(of=Tensor() as tensor)):
                return step, (self._address(tensor),)
            case Jump(unless=Truth(of=Comparison(a, b))):
                return step, (self.word(a), self.word(b))
            case _:
                return step, ()

    def _steps(self, steps: Sequence[tuple[Step, tuple[int, ...]]]) -> None:
        self.emit(Op.RELEASE)
        for step, words in steps:
            match step:
                case KernelCall(name=name):
                    self.emit(Op.KERNEL, name, *words)
                case Label():
                    self._places[step] = len(self.code)
                case Jump(to):
                    self._jumps[len(self.code)] = to
                    self.emit(_JUMPS[len(words)], 0, *words)
                case Leave():
                    self.emit(Op.ACQUIRE)
                    self.emit(Op.LEAVE)
        self.emit(Op.ACQUIRE)

    # --- arguments --------------------------------------------------------------------

    def _argument(self, index: int, *, from_outside: bool) -> None:
        use = self._trace.arguments.get(index)
        if use is None or not (use.dtype or use.is_integer or use.is_heap):
            if from_outside:
                self.emit(Op.PLAIN, index)
            return
        numbers = self._trace.numbers
        if use.is_integer:
            word = self.words[numbers.given("integer", index)] = self.new_word()
            self.emit(Op.INTEGER, word, index)
        elif use.dtype:
            word = self._bases[Argument(index)] = self.new_word()
            self.emit(Op.ARRAY, word, index, use.dtype, int(use.writable))
            if use.rank is not None:
                self.emit(Op.EXTENTS, self.num_words, index, use.rank)
                for axis in range(use.rank):
                    self.words[numbers.given("extent", index, axis)] = self.new_word()

    # --- memory -----------------------------------------------------------------------

    def _memory(self) -> None:
        """Give each storage a place: in the arena, or in an object that leaves the program."""
        for storage, tensors in _escaping(self._trace.results).items():
            self._escape(storage, tensors)
        temporary = {
            storage: None
            for step in self._trace.steps
            for tensor in tensors_of(step)
            if isinstance(storage := _itself(tensor.owner), Storage) and storage not in self._bases
        }
        places = places_of(self._trace.steps, temporary)
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
        self.emit(Op.ARENA, arena, size)
        for storage, place in places.items():
            self._bases[storage] = self._at(arena, offsets[id(place)])

    def _escape(self, storage: Storage, tensors: Sequence[Tensor | Storage]) -> None:
        """Make the object that has the bytes of `storage`: its only tensor, or all of them."""
        address = self._bases[storage] = self.new_word()
        made = self.new_object()
        match tensors:
            case [Tensor(shape=shape, offset=0) as tensor] if shape is not None and (
                self._trace.numbers.product((*shape, _itemsize(tensor.dtype))) == storage.size
            ):
                extents = map(self.word, shape)
                size = self.word(storage.size)
                self._objects[tensor] = made
                self.emit(Op.RESULT, made, address, tensor.dtype, size, *extents)
            case _:
                self._objects[storage] = made
                self.emit(Op.STORAGE, made, address, self.word(storage.size))

    def _address(self, tensor: Tensor) -> int:
        """The word with the address of the first element."""
        owner = _itself(tensor.owner)
        if owner not in self._bases:
            assert isinstance(owner, Fixed)
            assert owner.index is not None
            self._bases[owner] = self.constant(Address(owner.index))
        return self._at(self._bases[owner], tensor.offset)

    def _at(self, base: int, offset: Number) -> int:
        """The word with the address `offset` bytes after that in the word `base`."""
        if offset == 0:
            return base
        if (base, offset) not in self._addresses:
            by = self.word(offset)
            word = self._addresses[base, offset] = self.new_word()
            self.emit(Op.ADD, word, base, by)
        return self._addresses[base, offset]

    # --- objects ----------------------------------------------------------------------

    def _object(self, value: Value) -> int:
        """The word with the object that `value` is outside; makes it if need be."""
        key = value.owner if isinstance(value, Tensor) and _is_its_owner(value) else value
        key = key.itself() if isinstance(key, Storage) else key
        if key not in self._objects:
            self._objects[key] = self._made(key)
        return self._objects[key]

    def _made(self, value: Value) -> int:
        match value:
            case Argument(index):
                return self._with_object(Op.ARGUMENT, index)
            case Fixed(index):
                return self._with_object(Op.CONSTANT, -1 if index is None else index)
            case Prim(number):
                return self._with_object(Op.NUMBER, self.word(number))
            case Shape(extents):
                numbers = [self._object(Prim(extent)) for extent in extents]
                return self._with_object(Op.TUPLE, *numbers)
            case Fields(values):
                return self._with_object(Op.TUPLE, *map(self._object, values))
            case Heap(given=Argument() as given):
                return self._object(given)
            case Heap(slots=slots, size=size):
                if size > MOST_SLOTS:
                    raise Refused(f"a heap of {size} slots as a value")
                numbers = [self._object(Prim(slots.get(k, 0))) for k in range(size)]
                return self._with_object(Op.LIST, *numbers)
            case Tensor(owner=owner, dtype=dtype, shape=shape):
                assert shape is not None
                base = self._object(_itself(owner))
                address = self._address(value)
                return self._with_object(Op.VIEW, base, dtype, address, *map(self.word, shape))
            case Truth(of=Tensor() as tensor):
                return self._with_object(Op.TRUTH, self._address(tensor))
            case Truth() | Comparison() | Storage():
                raise Refused("a truth of dimensions as a value")

    def _with_object(self, op: Op, *operands: Operand) -> int:
        place = self.new_object()
        self.emit(op, place, *operands)
        return place

    def _write_heaps(self) -> None:
        """Store into the heaps that came as arguments; last, for it is seen from outside."""
        for heap in self._trace.heaps:
            if heap.given is not None:
                for slot in sorted(heap.written):
                    number = self._object(Prim(heap.slots[slot]))
                    self.emit(Op.STORE, heap.given.index, slot, number)


def _escaping(results: Sequence[Value]) -> dict[Storage, list[Tensor | Storage]]:
    """The storages that leave the program, with what leaves of each."""
    found: dict[Storage, dict[Tensor | Storage, None]] = {}
    for value in _parts(results):
        match value:
            case Tensor(owner=Storage() as storage):
                found.setdefault(storage.itself(), {})[value] = None
            case Storage():
                found.setdefault(value.itself(), {})[value.itself()] = None
            case _:
                pass
    return {storage: list(leaving) for storage, leaving in found.items()}


def _parts(values: Sequence[Value]) -> Iterator[Value]:
    for value in values:
        if isinstance(value, Fields):
            yield from _parts(value.values)
        else:
            yield value


def _itself(owner: Owner) -> Owner:
    return owner.itself() if isinstance(owner, Storage) else owner


def _is_read_late(value: Value) -> bool:
    """Whether `value` is known only when kernels have run."""
    return any(isinstance(part, Truth) for part in _parts((value,)))


def _is_its_owner(tensor: Tensor) -> bool:
    """Whether the object is the very argument or constant that has the elements."""
    return not tensor.view and not isinstance(tensor.owner, Storage)


def _itemsize(dtype: str) -> int:
    return np.dtype(dtype).itemsize
