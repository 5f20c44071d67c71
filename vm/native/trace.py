"""Traces: bytecode as symbolic numbers, checks and calls of kernels.

Checks and numbers depend on arguments, never on results of kernels.  So they are separate from the
steps, which are calls and branches, and a native program computes all numbers and checks of a
region first, including those of a branch that is not taken: at worst, it leaves a call
unnecessarily.

A program may leave a call at any point, even in the last turn of a loop: its kernels have written
only to its own memory, and the interpreter repeats the whole call from its arguments.  A program
that stores into an argument is an exception: it has one region, and no leave among its steps.
Kernels that write their inputs get them through ``writable``, which records it here.
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
    """A copy of the elements of `source` to `to`, of the same type."""

    to: Tensor
    source: Tensor
    size: Number


@dataclass(frozen=True, slots=True, eq=False)
class Label:
    """A jump target."""


@dataclass(frozen=True, slots=True)
class Jump:
    """A jump to `to`, conditional if `unless` is not ``None``.

    A jump back starts the next turn of a loop.
    """

    to: Label
    unless: Truth | None = None
    is_back: bool = False


@dataclass(frozen=True, slots=True)
class Carry:
    """A parallel assignment of the loop-carried values for the next turn.

    A tensor may be a copy; the third item is the owner of the original.
    """

    numbers: tuple[tuple[Computed, Number], ...]
    tensors: tuple[tuple[Carried, Tensor, Owner], ...]


@dataclass(frozen=True, slots=True)
class Leave:
    """Leaves the program: the interpreter reports the error."""


@dataclass(frozen=True, slots=True)
class Enter:
    """The start of a region."""

    region: Region


Step: TypeAlias = KernelCall | Copy | Label | Jump | Carry | Leave | Enter


@dataclass(slots=True)
class ArgumentUse:
    """The requirements on an argument: an array if `dtype` is set, of `rank` if that is set.

    A tuple has `fields`, numbers of arguments after those of the call.
    """

    dtype: str | None = None
    rank: int | None = None
    writable: bool = False
    is_integer: bool = False
    is_heap: bool = False
    fields: tuple[int, ...] | None = None


@dataclass
class Trace:
    """The trace of a run of instructions.

    Each of `steps` is in a region; `region` is the current one, `root` the first.  `results` are
    the results of the run, `heaps` the heap arguments.
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
        """Append a step."""
        self.steps.append((self.region, step))

    def enter(self, region: Region) -> None:
        """Continue in `region`."""
        self.region = region
        self.numbers.divisions = region.divisions
        if not region.is_entered:
            region.is_entered = True
            self.add(Enter(region))


def parts_of(values: Sequence[Value]) -> Iterator[Value]:
    """`values`, with tuples replaced by their fields."""
    for value in values:
        if isinstance(value, Fields):
            yield from parts_of(value.values)
        else:
            yield value


def tensors_in(values: Sequence[Value]) -> Iterator[Tensor]:
    """The tensors that are read when `values` leave a program; a storage counts as one."""
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
