"""Assembles a native program from a trace.

First come all instructions that may leave the call to the interpreter: arguments, numbers, checks,
memory, returned objects.  Then come the calls of kernels, without Python's global lock.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from relax_egraph.vm.native.objects import Objects, is_late
from relax_egraph.vm.native.program import (
    NativeInstruction,
    NativeProgram,
    Op,
)
from relax_egraph.vm.native.refused import Refused
from relax_egraph.vm.native.regions import Region, is_known_in
from relax_egraph.vm.native.trace import (
    ArgumentUse,
    Carry,
    Copy,
    Enter,
    Jump,
    KernelCall,
    Label,
    Leave,
    Step,
    Trace,
)
from relax_egraph.vm.native.values import (
    Argument,
    Comparison,
    Prim,
    Tensor,
    Truth,
)
from relax_egraph.vm.native.words import Scope

_JUMPS = (Op.JUMP, Op.UNLESS, Op.UNLESS_AT_MOST)
"""Jump instructions, by the number of words of the condition."""


def assemble(name: str, trace: Trace, num_arguments: int, *, from_outside: bool) -> NativeProgram:
    """The program of `trace`, which returns its only result.

    With `from_outside`, every argument without a known kind must be an array that needs no
    conversion.
    """
    return _Assembler(trace).program(name, num_arguments, from_outside=from_outside)


class _Assembler(Objects):
    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        self._labels: dict[Label, int] = {}
        self._jumps: dict[int, Label] = {}
        self._scopes = defaultdict[Region, Scope](Scope)
        self._scopes[trace.root] = self.scopes[0]
        self._steps: dict[Region, list[Step]] = {}
        self._prepared: dict[int, tuple[int, ...]] = {}

    def program(self, name: str, num_arguments: int, *, from_outside: bool) -> NativeProgram:
        trace = self._trace
        for index in range(num_arguments):
            self._argument(index, from_outside=from_outside)
        for region, step in trace.steps:
            self._steps.setdefault(region, []).append(step)
        (result,) = trace.results
        early = not is_late(result, trace.root)
        self._check_stores(early=early)
        self._numbers(trace.root)
        if any(isinstance(step, Enter) for _, step in trace.steps):
            for item in trace.numbers.items:  # objects must not be read without the lock
                self.word(item)
        self._memory(trace.root)
        returned = self._object(result) if early else None
        self._prepare(trace.root)
        self._write_heaps()
        if trace.steps:
            self._write_steps()
        self.emit(Op.RETURN, self._object(result) if returned is None else returned)
        constants = tuple((word, value) for value, word in self.constants.items())
        for at, label in self._jumps.items():
            op, (_, *words) = self.code[at].op, self.code[at].operands
            self.code[at] = NativeInstruction(op, (self._labels[label], *words))
        code = tuple(map(self.numbered, self.code))
        sizes = self.num_words, self.num_objects, self._num_arenas
        return NativeProgram(name, num_arguments, constants, *sizes, code)

    def _check_stores(self, *, early: bool) -> None:
        """Refuse a program that may leave after a store that is visible from outside."""
        trace = self._trace
        if not any(use.writable for use in trace.arguments.values()):
            return
        if not early:
            raise Refused("a truth that is read after a store into an argument")
        if any(isinstance(step, Enter) for _, step in trace.steps):
            raise Refused("a loop in a program that stores into an argument")

    # --- regions ----------------------------------------------------------------------

    def _numbers(self, region: Region) -> None:
        """Write the start of a region: divisions, which may be by zero, and checks."""
        for number in region.divisions:
            self.word(number)
        for check in region.checks:
            op = Op.EQUAL if check.kind == "equal" else Op.AT_MOST
            self.emit(op, self.word(check.a), self.word(check.b))

    def _prepare(self, region: Region) -> None:
        """Compute all words that the steps of a region read."""
        for step in self._steps.get(region, ()):
            self._prepared[id(step)] = tuple(self._words(step))

    def _enter(self, region: Region) -> None:
        """Write the start of a region, with all words that its steps need."""
        self._write_from(region)
        self._numbers(region)
        self._memory(region)
        self._prepare(region)

    def _write_from(self, region: Region) -> None:
        """Continue writing in `region`."""
        self.scopes = [self._scopes[r] for r in region.upwards()]

    # --- steps ------------------------------------------------------------------------

    def _words(self, step: Step) -> Iterator[int]:
        """The words that `step` reads."""
        match step:
            case KernelCall(arrays=arrays, integers=integers):
                yield from map(self._address, arrays)
                yield from map(self.word, integers)
            case Copy(to, source, size):
                yield from (self._address(to), self._address(source), self.word(size))
            case Jump(unless=Truth(of=Tensor() as tensor)):
                yield self._address(tensor)
            case Jump(unless=Truth(of=Comparison(a, b))):
                yield from (self.word(a), self.word(b))
            case Carry(numbers, tensors):
                yield from (self.word(number) for _, number in numbers)
                for to, tensor, owner in tensors:
                    yield self._address(tensor)
                    if to in self._flagged:
                        yield self._flag_of(to, owner)
            case _:
                pass

    def _write_steps(self) -> None:
        self.emit(Op.RELEASE)
        for _, step in self._trace.steps:
            words = self._prepared.get(id(step), ())
            match step:
                case Enter(region):
                    self._enter(region)
                case KernelCall(name=name):
                    self.emit(Op.KERNEL, name, *words)
                case Copy():
                    self.emit(Op.COPY, *words)
                case Label():
                    self._labels[step] = len(self.code)
                case Jump(to, is_back=True):
                    self._jumps[len(self.code)] = to
                    self.emit(Op.TURN, 0)
                case Jump(to):
                    self._jumps[len(self.code)] = to
                    self.emit(_JUMPS[len(words)], 0, *words)
                case Carry():
                    self._carry(step, words)
                case Leave():
                    self.emit(Op.ACQUIRE)
                    self.emit(Op.LEAVE)
        self.emit(Op.ACQUIRE)
        self._write_from(self._trace.region)

    def _carry(self, step: Carry, words: Sequence[int]) -> None:
        """Move words to loop-carried words, as a parallel assignment."""
        to = [self.word(number) for number, _ in step.numbers]
        for carried, _, _ in step.tensors:
            to.append(self._base(carried))
            if carried in self._flagged:
                to.append(self._flag(carried))
        kept: dict[int, int] = {}
        for word in words:
            if word in to and word not in kept:
                kept[word] = self.new_word()
                self.emit(Op.MOVE, kept[word], word)
        for place, word in zip(to, words, strict=True):
            if place != word:
                self.emit(Op.MOVE, place, kept.get(word, word))

    # --- arguments --------------------------------------------------------------------

    def _argument(self, index: int, *, from_outside: bool) -> None:
        use, place = self._trace.arguments.get(index), self._field_words.get(index, index)
        if use is None or use == ArgumentUse():
            if from_outside:
                self.emit(Op.PLAIN, place)
            return
        numbers = self._trace.numbers
        if use.is_integer:
            word = self.scopes[0].words[numbers.argument("integer", index)] = self.new_word()
            self.emit(Op.INTEGER, word, place)
        elif use.fields is not None:
            self.emit(Op.FIELDS, self.num_words, place, len(use.fields))
            for number in use.fields:
                self._field_words[number] = ~self.new_word()
            for number in use.fields:
                self._argument(number, from_outside=from_outside)
        elif use.dtype:
            word = self._bases[Argument(index)] = self.new_word()
            self.emit(Op.ARRAY, word, place, use.dtype, int(use.writable))
            if use.rank is not None:
                self.emit(Op.EXTENTS, self.num_words, place, use.rank)
                for axis in range(use.rank):
                    self.scopes[0].words[numbers.argument("extent", index, axis)] = self.new_word()

    def _write_heaps(self) -> None:
        """Store into the heaps that are arguments; last, because it is visible from outside."""
        for heap in self._trace.heaps:
            if heap.argument is not None:
                for slot in sorted(heap.written):
                    if not is_known_in(heap.slots[slot], self._trace.root):
                        raise Refused("a dimension that a loop has changed, in a heap")
                    number = self._object(Prim(heap.slots[slot]))
                    self.emit(Op.STORE, heap.argument.index, slot, number)
