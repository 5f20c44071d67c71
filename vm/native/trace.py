"""What a run of bytecode does, in terms of numbers, checks and calls of kernels.

Checks and numbers depend on what is given, never on what kernels compute.  So they are collected
apart from the steps, which are calls and branches, and a native program does all those of a
region first: also those of a branch that is not taken, at worst to leave a call that need not be
left.

A program may leave a call wherever it is, a loop in its last turn, too: nothing can be seen of
what it did.  For its kernels have written to nothing but memory of its own, and the interpreter
does the whole call again from its arguments.  Where that does not hold, all that may leave comes
first: a program that stores into an argument has one region, and no leave among its steps.  What
kernels write beside their outputs has come through ``writable``, which says so here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from relax_egraph.vm.native.numbers import Computed, Number, Numbers
from relax_egraph.vm.native.regions import Loop, Region
from relax_egraph.vm.native.values import (
    Carried,
    Fields,
    Heap,
    Owner,
    Storage,
    Tensor,
    Truth,
    Value,
)


@dataclass(frozen=True, slots=True)
class KernelCall:
    """A call of the kernel `name`."""

    name: str
    arrays: tuple[Tensor, ...]
    integers: tuple[Number, ...]


@dataclass(frozen=True, slots=True)
class Copy:
    """The elements of `source` go to `to`, which is of the same type."""

    to: Tensor
    source: Tensor
    size: Number


@dataclass(frozen=True, slots=True, eq=False)
class Label:
    """A place to jump to."""


@dataclass(frozen=True, slots=True)
class Jump:
    """Go on at `to`; unless something holds, if `unless` is said.

    It may lead back, to the next turn of a loop.
    """

    to: Label
    unless: Truth | None = None
    is_back: bool = False


@dataclass(frozen=True, slots=True)
class Carry:
    """Give values to a turn of a loop, all at once.

    A tensor may be a copy: then it stands for one of another owner, the last that is said.
    """

    numbers: tuple[tuple[Computed, Number], ...]
    tensors: tuple[tuple[Carried, Tensor, Owner], ...]


@dataclass(frozen=True, slots=True)
class Leave:
    """Leave the program: the interpreter says what is wrong."""


@dataclass(frozen=True, slots=True)
class Enter:
    """The beginning of a region."""

    region: Region


Step: TypeAlias = KernelCall | Copy | Label | Jump | Carry | Leave | Enter


@dataclass(slots=True)
class ArgumentUse:
    """What an argument must be: an array if `dtype` is said, of so many axes if `rank` is.

    A tuple has `fields`, the numbers of arguments that follow those of the call.
    """

    dtype: str | None = None
    rank: int | None = None
    writable: bool = False
    is_integer: bool = False
    is_heap: bool = False
    fields: tuple[int, ...] | None = None


@dataclass
class Trace:
    """A run of instructions from beginning to end.

    Each of `steps` is in a region, `region` is that of the next one, `root` the first.  `results`
    is what the run leaves, `heaps` are those that came as arguments.
    """

    numbers: Numbers
    arguments: dict[int, ArgumentUse]
    root: Region = field(default_factory=Region)
    steps: list[tuple[Region, Step]] = field(default_factory=list[tuple[Region, Step]])
    results: list[Value] = field(default_factory=list[Value])
    heaps: list[Heap] = field(default_factory=list[Heap])
    loops: list[Loop] = field(default_factory=list[Loop])

    def __post_init__(self) -> None:
        self.region = self.root
        self.root.is_entered = True
        self.numbers.divisions = self.root.divisions

    def add(self, step: Step) -> None:
        """Write a step."""
        self.steps.append((self.region, step))

    def enter(self, region: Region) -> None:
        """Go on in `region`."""
        self.region = region
        self.numbers.divisions = region.divisions
        if not region.is_entered:
            region.is_entered = True
            self.add(Enter(region))


def parts_of(values: Sequence[Value]) -> Iterator[Value]:
    """`values`, with what is in tuples in place of these."""
    for value in values:
        if isinstance(value, Fields):
            yield from parts_of(value.values)
        else:
            yield value


def tensors_in(values: Sequence[Value]) -> Iterator[Tensor]:
    """The tensors that are read when `values` leave a program; bytes count as one."""
    for part in parts_of(values):
        match part:
            case Tensor():
                yield part
            case Truth(of=Tensor() as tensor):
                yield tensor
            case Storage():
                yield Tensor(part, "uint8", (part.size,))
            case _:
                pass


def tensors_of(step: Step) -> tuple[Tensor, ...]:
    """The tensors that `step` reads or writes."""
    match step:
        case KernelCall(arrays=arrays):
            return arrays
        case Jump(unless=Truth(of=Tensor() as tensor)):
            return (tensor,)
        case Copy(to=to, source=source):
            return to, source
        case Carry(tensors=tensors):
            return tuple(source for _, source, _ in tensors)
        case _:
            return ()
