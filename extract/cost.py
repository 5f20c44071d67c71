"""What a kernel costs, in seconds, on a machine and at given sizes of the symbols.

    launch + max(bytes / bandwidth, flops / peak)

each at the share of the machine's best that the schedule reaches.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import TypeAlias

import numpy as np

from relax_egraph.extract.work import MOVEMENT, READS_RESULT, WORK, Applied, Extents
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Attr
from relax_egraph.ir.kernel import Kernel, Schedule, Step
from relax_egraph.ir.struct_info import TensorStructInfo

Hints: TypeAlias = Mapping[str, int]
"""The sizes of dimension symbols that prices are computed for."""

DEFAULT_SIZE = 64
"""The size of a symbol that the hints do not name."""

VIEW = 6e-7
"""Seconds for giving a tensor a new shape: one call of the virtual machine."""

BUILD = 1e-9
"""Seconds for each operator on constants: they are folded, and fewer of them are nicer."""

OPAQUE = 1e-5
"""Seconds for a binding that is kept as it is: the same in every program."""

RUNTIME_CALL = 1e-5
"""Seconds for calling an operator that has no loops, besides what it moves and computes."""

_RUNTIME_SHARE = 0.05
"""The share of the machine that an operator without loops reaches."""

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
    launch=1.6e-6,
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
"""One core of a current server, fixed so that the same module is optimized the same anywhere.

To launch a kernel is to call it from the virtual machine's interpreter: 1.6 µs measured in a chain.
"""


@dataclass(frozen=True, slots=True)
class _Measured:
    """What the shape of `info` comes to, as far as it is known."""

    info: TensorStructInfo
    extents: Extents
    elements: float | None
    nbytes: float | None


class Costs:
    """Prices on one machine at one set of hints; remembers what shapes come to."""

    def __init__(self, profile: Profile, hints: Hints | None = None) -> None:
        self.profile = profile
        self._hints = hints or {}
        self._sizes: dict[Dim, int] = {}
        self._measured: dict[int, _Measured] = {}  # by identity: to hash a shape takes long

    def size(self, dim: Dim) -> int:
        """`dim` at the hints; the default if they cannot be meant, as they make it negative."""
        if isinstance(dim, int):
            return dim
        if dim not in self._sizes:
            values = {s: self._hints.get(s, DEFAULT_SIZE) for s in dims.symbols(dim)}
            size = dims.evaluate(dim, values)
            self._sizes[dim] = size if size >= 0 else DEFAULT_SIZE
        return self._sizes[dim]

    def extents(self, info: TensorStructInfo) -> Extents:
        """The extents of a tensor; ``None`` if they are not known symbolically."""
        return self._measure(info).extents

    def elements(self, info: TensorStructInfo) -> float | None:
        """How many elements a tensor has; ``None`` if its shape is not known symbolically."""
        return self._measure(info).elements

    def nbytes(self, info: TensorStructInfo) -> float | None:
        """How many bytes a tensor has; ``None`` if its shape or its dtype is not known."""
        return self._measure(info).nbytes

    def _measure(self, info: TensorStructInfo) -> "_Measured":
        found = self._measured.get(id(info))
        if found is None:
            known = info.dims
            extents = None if known is None else tuple(map(self.size, known))
            elements = None if extents is None else math.prod(extents)
            item = None if info.dtype is None else np.dtype(info.dtype).itemsize
            nbytes = None if elements is None or item is None else elements * item
            found = self._measured[id(info)] = _Measured(info, extents, elements, nbytes)
        return found

    def flops(
        self,
        op: str,
        attrs: Mapping[str, Attr],
        operands: Iterable[TensorStructInfo],
        result: TensorStructInfo,
    ) -> float | None:
        """The work of one application of `op`; ``None`` if a shape that matters is not known."""
        extents = tuple(map(self.extents, operands))
        flops = WORK[op](Applied(attrs, extents, self.extents(result)))
        return None if math.isnan(flops) else flops

    def kernel(self, kernel: Kernel, schedule: Schedule) -> float:
        """Seconds for one run of `kernel`, all of whose shapes are known."""
        if schedule.anchor == "view":
            return VIEW
        read = math.fsum(map(self._read, range(len(kernel.inputs)), repeat(kernel)))
        written = math.fsum(self.nbytes(kernel.info(value)) or 0.0 for value in kernel.outputs)
        seconds = self._busy(read + written, self._arithmetic(kernel), schedule)
        return self.profile.launch + seconds + _STEP * len(kernel.steps)

    def operator(
        self,
        op: str,
        attrs: Mapping[str, Attr],
        operands: Sequence[TensorStructInfo],
        results: Sequence[TensorStructInfo],
        schedule: Schedule | None,
    ) -> float:
        """Seconds for `op` as it stands, by loops of its own or else called at run time.

        What is not known of it counts as nothing.
        """
        written = math.fsum(self.nbytes(info) or 0.0 for info in results)
        read = [self.nbytes(info) or 0.0 for info in operands]
        if op in READS_RESULT and read:
            read[0] = min(read[0], written)
        flops = self.flops(op, attrs, operands, results[0]) if results else None
        arithmetic = (flops or 0.0) / self.profile.peak_of(results[0].dtype if results else None)
        moved = math.fsum((*read, written))
        if schedule is None:
            return RUNTIME_CALL + max(self.profile.moving(moved), arithmetic) / _RUNTIME_SHARE
        return self.profile.launch + self._busy(moved, arithmetic, schedule)

    def _busy(self, moved: float, arithmetic: float, schedule: Schedule) -> float:
        """Seconds to move bytes and to compute for so long at peak, at the schedule's shares."""
        memory = self.profile.moving(moved) / schedule.bandwidth
        computing = arithmetic / schedule.flops
        return max(memory, computing) + _HIDDEN * min(memory, computing)

    def _read(self, value: int, kernel: Kernel) -> float:
        """The bytes that `kernel` reads of its input `value`: of a slice, those it takes."""
        source = kernel.inputs[value]
        if source.scalar is not None:
            return 0.0
        whole = self.nbytes(source.struct_info) or 0.0
        users = [s for s in kernel.steps if value in s.values]
        if not all(s.op.name in READS_RESULT and s.values[0] == value for s in users):
            return whole
        return min(whole, math.fsum(self.nbytes(s.struct_info) or 0.0 for s in users))

    def _arithmetic(self, kernel: Kernel) -> float:
        """Seconds at peak for the steps of `kernel`, each counted as often as it is computed.

        What comes before the first reduction, or product, is computed inside of the loops over
        what uses it: below a broadcast, once for each element of the *broadcast* tensor.
        """
        count = len(kernel.inputs)
        values = [step.values for step in kernel.steps]
        anchors = [*map(_is_anchor, kernel.steps)]
        kept: list[bool] = [False] * count
        for operands, anchor in zip(values, anchors, strict=True):
            kept.append(anchor or any([kept[v] for v in operands]))
        runs = [0.0] * (count + len(kernel.steps))
        seconds = 0.0
        for number in range(len(kernel.steps) - 1, -1, -1):
            step, value = kernel.steps[number], count + number
            own = self.elements(step.struct_info) or 0.0
            runs[value] = own if kept[value] else max(own, runs[value])
            if not anchors[number]:
                for operand in values[number]:
                    runs[operand] = max(runs[operand], runs[value])
            infos = map(kernel.info, values[number])
            flops = self.flops(step.op.name, dict(step.attrs), infos, step.struct_info) or 0.0
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
