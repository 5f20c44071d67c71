"""What a kernel costs, in seconds, on a machine and at given sizes of the symbols.

    launch + max(bytes / bandwidth, flops / peak)

each at the share of the machine's best that the schedule reaches.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from relax_egraph.extract.work import MOVEMENT, WORK
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.kernel import Kernel, Schedule, Step
from relax_egraph.ir.struct_info import TensorStructInfo

Hints: TypeAlias = Mapping[str, int]
"""The sizes of dimension symbols that prices are computed for."""

DEFAULT_SIZE = 64
"""The size of a symbol that the hints do not name."""

VIEW = 1e-8
"""Seconds for a kernel that only gives a tensor a new shape."""

BUILD = 1e-9
"""Seconds for each operator on constants: they are folded, and fewer of them are nicer."""

OPAQUE = 1e-5
"""Seconds for a binding that is kept as it is: the same in every program."""

RUNTIME_CALL = 1e-5
"""Seconds for calling an operator that no kernel runs, besides what it moves and computes."""

_RUNTIME_SHARE = 0.05
"""The share of the machine that an operator without a kernel reaches."""

_STEP = 1e-10
"""Seconds for each step of a kernel, so that of two that cost the same the shorter is chosen."""

_HIDDEN = 1 / 64
"""The share that shows of the smaller of memory and arithmetic time, which the other hides."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A machine: seconds to launch a kernel, flops per second by dtype, bytes per second.

    Of what a kernel moves, the first `cache` bytes move at `cache_bandwidth`, more at `bandwidth`.
    """

    launch: float
    peak: Mapping[str, float]
    bandwidth: float
    cache_bandwidth: float
    cache: float

    def peak_of(self, dtype: str | None) -> float:
        """Flops per second at `dtype`; at the slowest, if it is not known."""
        return min(self.peak.values()) if dtype is None else self.peak[dtype]

    def moving(self, nbytes: float) -> float:
        """Seconds to move `nbytes` at full bandwidth."""
        cached = min(nbytes, self.cache)
        return cached / self.cache_bandwidth + (nbytes - cached) / self.bandwidth


REFERENCE_PROFILE = Profile(
    launch=3e-7,
    peak={
        "float32": 240e9,
        "float64": 120e9,
        "bool": 240e9,
        "int8": 240e9,
        "uint8": 240e9,
        "int16": 240e9,
        "int32": 120e9,
        "int64": 60e9,
    },
    bandwidth=40e9,
    cache_bandwidth=100e9,
    cache=8 * 2**20,
)
"""One core of a current server, fixed so that the same module is optimized the same anywhere."""


class Costs:
    """Prices on one machine at one set of hints; remembers what shapes come to."""

    def __init__(self, profile: Profile, hints: Hints | None = None) -> None:
        self.profile = profile
        self._hints = hints or {}
        self._sizes: dict[Dim, int] = {}
        self._elements: dict[TensorStructInfo, float | None] = {}

    def size(self, dim: Dim) -> int:
        """`dim` at the hints; the default if they cannot be meant, as they make it negative."""
        if isinstance(dim, int):
            return dim
        if dim not in self._sizes:
            values = {s: self._hints.get(s, DEFAULT_SIZE) for s in dims.symbols(dim)}
            size = dims.evaluate(dim, values)
            self._sizes[dim] = size if size >= 0 else DEFAULT_SIZE
        return self._sizes[dim]

    def elements(self, info: TensorStructInfo) -> float | None:
        """How many elements a tensor has; ``None`` if its shape is not known symbolically."""
        if info not in self._elements:
            known = info.dims
            self._elements[info] = None if known is None else math.prod(map(self.size, known))
        return self._elements[info]

    def nbytes(self, info: TensorStructInfo) -> float | None:
        """How many bytes a tensor has; ``None`` if its shape or its dtype is not known."""
        elements = self.elements(info)
        if elements is None or info.dtype is None:
            return None
        return elements * np.dtype(info.dtype).itemsize

    def flops(
        self, op: str, result: TensorStructInfo, operands: Iterable[TensorStructInfo]
    ) -> float | None:
        """The work of one application of `op`; ``None`` if a shape that matters is not known."""
        work = WORK[op]
        if work.flops == 0:
            return 0.0
        first = next(iter(operands), result)
        elements = self.elements(first if work.each == "operand" else result)
        if elements is None:
            return None
        if work.each == "product":
            return None if not first.dims else work.flops * elements * self.size(first.dims[-1])
        return work.flops * elements

    def kernel(self, kernel: Kernel, schedule: Schedule) -> float:
        """Seconds for one run of `kernel`, all of whose shapes are known."""
        if schedule.anchor == "view":
            return VIEW
        read = [i.struct_info for i in kernel.inputs if i.scalar is None]
        written = [kernel.info(value) for value in kernel.outputs]
        moved = math.fsum(self.nbytes(info) or 0.0 for info in (*read, *written))
        memory = self.profile.moving(moved) / schedule.bandwidth
        arithmetic = self._arithmetic(kernel) / schedule.flops
        shown = max(memory, arithmetic) + _HIDDEN * min(memory, arithmetic)
        return self.profile.launch + shown + _STEP * len(kernel.steps)

    def runtime_call(
        self, op: str, result: TensorStructInfo, operands: tuple[TensorStructInfo, ...]
    ) -> float:
        """Seconds for `op` as it stands, at run time; what is not known of it counts as nothing."""
        moved = math.fsum(self.nbytes(info) or 0.0 for info in (result, *operands))
        flops = self.flops(op, result, operands) or 0.0
        busy = max(self.profile.moving(moved), flops / self.profile.peak_of(result.dtype))
        return RUNTIME_CALL + busy / _RUNTIME_SHARE

    def _arithmetic(self, kernel: Kernel) -> float:
        """Seconds at peak for the steps of `kernel`, each counted as often as it is computed.

        What comes before the first reduction, or product, is computed inside of the loops over
        what uses it: below a broadcast, once for each element of the *broadcast* tensor.
        """
        count = len(kernel.inputs)
        kept: list[bool] = [False] * count
        for step in kernel.steps:
            kept.append(_is_anchor(step) or any(kept[v] for v in step.values))
        runs = [0.0] * (count + len(kernel.steps))
        seconds = 0.0
        for number in range(len(kernel.steps) - 1, -1, -1):
            step, value = kernel.steps[number], count + number
            own = self.elements(step.struct_info) or 0.0
            runs[value] = own if kept[value] else max(own, runs[value])
            if not _is_anchor(step):
                for operand in step.values:
                    runs[operand] = max(runs[operand], runs[value])
            infos = (kernel.info(v) for v in step.values)
            flops = self.flops(step.op.name, step.struct_info, infos) or 0.0
            again = runs[value] / own if own else 1.0
            seconds += again * flops / self.profile.peak_of(step.struct_info.dtype)
        return seconds


def _is_anchor(step: Step) -> bool:
    return not step.op.elementwise and step.op.name not in MOVEMENT


def price(
    kernel: Kernel,
    schedule: Schedule,
    profile: Profile = REFERENCE_PROFILE,
    hints: Hints | None = None,
) -> float:
    """Seconds for one run of `kernel`, which has known shapes, as `schedule` runs it."""
    return Costs(profile, hints).kernel(kernel, schedule)
