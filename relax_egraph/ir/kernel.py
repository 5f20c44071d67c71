"""A kernel candidate: a small dataflow program that is to run as one loop nest.

Extraction builds one for every cut that it considers, the kernel library chooses its schedule,
and the extracted ones become fused functions.  Values are numbered: first the inputs,
then the steps.
"""

from dataclasses import dataclass, field

import numpy as np

from relax_egraph.ir.expr import Attr
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import ShapeStructInfo, TensorStructInfo

ANCHOR, SECONDS = "anchor", "seconds"
"""The attributes of a fused function that have the `Promise` of its kernel."""


@dataclass(frozen=True, slots=True)
class Input:
    """A tensor that the kernel reads; `scalar` is its value where it is a known scalar."""

    struct_info: TensorStructInfo
    scalar: float | int | bool | np.generic | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One operator inside a kernel.

    `operands` has one entry for each operand of `op`: the number of a value for a tensor, the
    numbers of several for tensors, the shape itself for a shape; `values` are those numbers.
    `attrs` are complete, in the operator's order.
    """

    op: Op
    operands: tuple[int | tuple[int, ...] | ShapeStructInfo, ...]
    attrs: tuple[tuple[str, Attr], ...]
    struct_info: TensorStructInfo
    values: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        numbers: list[int] = []
        for operand in self.operands:
            if isinstance(operand, int):
                numbers.append(operand)
            elif isinstance(operand, tuple):
                numbers.extend(operand)
        object.__setattr__(self, "values", tuple(numbers))


@dataclass(frozen=True, slots=True)
class Promise:
    """What extraction pays for: a kernel of the schedule `anchor`, which takes `seconds`.

    The time is that at the sizes that extraction assumes.
    """

    anchor: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Kernel:
    """Inputs, steps in order of execution, and the numbers of the values it writes.

    A kernel that a library offers has its `promise`.
    """

    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    promise: Promise | None = field(default=None, compare=False)

    def info(self, value: int) -> TensorStructInfo:
        """The struct info of value `value`."""
        if value < len(self.inputs):
            return self.inputs[value].struct_info
        return self.steps[value - len(self.inputs)].struct_info

    def step(self, value: int) -> Step | None:
        """The step that computes `value`; ``None`` for an input."""
        return None if value < len(self.inputs) else self.steps[value - len(self.inputs)]


@dataclass(frozen=True, slots=True)
class Schedule:
    """The schedule of a kernel: the name of its anchor, and the shares of peak that it reaches.

    `flops` and `bandwidth` are shares in (0, 1] of the machine's peak arithmetic and memory
    throughput for this shape of loops.
    """

    anchor: str
    flops: float
    bandwidth: float
