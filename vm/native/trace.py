"""What a run of bytecode does, in terms of numbers, checks and calls of kernels.

Checks and numbers depend on what is given, never on what kernels compute.  So they are collected
apart from the steps, which are calls and branches, and a native program does all of them first:
also those of a branch that is not taken, at worst to leave a call that need not be left.
"""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from relax_egraph.vm.native.numbers import Number, Numbers
from relax_egraph.vm.native.values import Heap, Tensor, Truth, Value


@dataclass(frozen=True, slots=True)
class Check:
    """What must hold of two numbers."""

    kind: Literal["equal", "at most"]
    a: Number
    b: Number


@dataclass(frozen=True, slots=True)
class KernelCall:
    """A call of the kernel `name`."""

    name: str
    arrays: tuple[Tensor, ...]
    integers: tuple[Number, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Label:
    """A place to jump to."""


@dataclass(frozen=True, slots=True)
class Jump:
    """Go on at `to`; unless something holds, if `unless` is said."""

    to: Label
    unless: Truth | None = None


@dataclass(frozen=True, slots=True)
class Leave:
    """Leave the program: the interpreter says what is wrong."""


Step: TypeAlias = KernelCall | Label | Jump | Leave


@dataclass(slots=True)
class ArgumentUse:
    """What an argument must be: an array if `dtype` is said, of so many axes if `rank` is."""

    dtype: str | None = None
    rank: int | None = None
    writable: bool = False
    is_integer: bool = False
    is_heap: bool = False


@dataclass(slots=True)
class Trace:
    """A run of instructions from beginning to end.

    `results` is what it leaves, `heaps` are those that came as arguments.
    """

    numbers: Numbers
    arguments: dict[int, ArgumentUse]
    checks: list[Check] = field(default_factory=list[Check])
    steps: list[Step] = field(default_factory=list[Step])
    results: list[Value] = field(default_factory=list[Value])
    heaps: list[Heap] = field(default_factory=list[Heap])


def tensors_of(step: Step) -> tuple[Tensor, ...]:
    """The tensors that `step` reads or writes."""
    match step:
        case KernelCall(arrays=arrays):
            return arrays
        case Jump(unless=Truth(of=Tensor() as tensor)):
            return (tensor,)
        case _:
            return ()
