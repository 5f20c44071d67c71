"""The cost model: seconds of a kernel on a machine at fixed sizes of the symbols (a roofline).

    launch + max(bytes / bandwidth, flops / peak)

each at the share of the machine's peak that the schedule reaches.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import TypeAlias

import numpy as np

from relax_egraph.extract.prices import PricedCall, Prices
from relax_egraph.extract.profile import Profile
from relax_egraph.extract.work import MOVEMENT, READS_RESULT, Applied, Extents, work_of
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Attr
from relax_egraph.ir.kernel import Kernel, Schedule, Step
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, TupleStructInfo

Sizes: TypeAlias = Mapping[str, int]
"""The sizes of dimension symbols at which costs are computed."""

DEFAULT_SIZE = 64
"""The size of a symbol without a hint."""

VIEW = 6e-7
"""Seconds for a view of a tensor: one call of the virtual machine."""

FOLDING = 1e-9
"""Seconds for folding an operator at build time: not 0, so that fewer of them are preferred."""

KEPT_BYTE = 1e-14
"""Seconds for a byte of a folded constant: 1 ns to fill and keep it, spread over 100 000 runs."""

OPAQUE = 1e-5
"""Seconds for an opaque binding: the same in every program."""

RUNTIME_CALL = 1e-5
"""Seconds of overhead of a call of an operator that has no loops."""

_RUNTIME_SHARE = 0.05
"""The share of the machine's peak that an operator without loops reaches."""

_STEP = 1e-10
"""Seconds per step of a kernel: a tie-breaker for the shorter of two kernels."""

_HIDDEN = 1 / 64
"""The share of the smaller of memory and arithmetic time that does not overlap with the other."""


@dataclass(frozen=True, slots=True)
class _TensorSize:
    """The size of a tensor at the sizes of the symbols, as far as it is known."""

    info: TensorStructInfo
    extents: Extents
    elements: float | None
    nbytes: float | None


@dataclass(frozen=True, slots=True)
class ArithmeticTime:
    """Seconds of arithmetic: at the peak of the machine, and stated by a user's prices."""

    at_peak: float
    stated: float = 0.0


class Costs:
    """Costs on one machine at one size of each symbol; sizes of tensors are cached."""

    def __init__(
        self, profile: Profile, sizes: Sizes | None = None, prices: Prices | None = None
    ) -> None:
        self.profile = profile
        self.sizes = sizes or {}
        self.prices = prices or Prices()
        self._known: dict[Dim, int] = {}
        self._sizes_of: dict[int, _TensorSize] = {}  # by identity: hashing a shape is slow
        self._steps: dict[tuple[object, ...], ArithmeticTime] = {}

    def size(self, dim: Dim) -> int:
        """`dim` at the sizes; the default where they make it negative, so do not fit."""
        if isinstance(dim, int):
            return dim
        if dim not in self._known:
            values = {s: self.sizes.get(s, DEFAULT_SIZE) for s in dims.symbols(dim)}
            size = dims.evaluate(dim, values)
            self._known[dim] = size if size >= 0 else DEFAULT_SIZE
        return self._known[dim]

    def extents(self, info: TensorStructInfo) -> Extents:
        """The extents of a tensor; ``None`` if they are not known symbolically."""
        return self._size_of(info).extents

    def elements(self, info: TensorStructInfo) -> float | None:
        """How many elements a tensor has; ``None`` if its shape is not known symbolically."""
        return self._size_of(info).elements

    def nbytes(self, info: TensorStructInfo) -> float | None:
        """How many bytes a tensor has; ``None`` if its shape or its dtype is not known."""
        return self._size_of(info).nbytes

    def _size_of(self, info: TensorStructInfo) -> "_TensorSize":
        found = self._sizes_of.get(id(info))
        if found is None:
            known = info.dims
            extents = None if known is None else tuple(map(self.size, known))
            elements = None if extents is None else math.prod(extents)
            item = None if info.dtype is None else np.dtype(info.dtype).itemsize
            nbytes = None if elements is None or item is None else elements * item
            found = self._sizes_of[id(info)] = _TensorSize(info, extents, elements, nbytes)
        return found

    def flops(
        self,
        op: str,
        attrs: Mapping[str, Attr],
        operands: Iterable[TensorStructInfo],
        result: TensorStructInfo,
    ) -> float | None:
        """The flops of one application of `op`; ``None`` if a shape that matters is unknown."""
        flops = work_of(op)(self._applied(attrs, operands, result))
        return None if math.isnan(flops) else flops

    def computing(
        self,
        op: str,
        attrs: Mapping[str, Attr],
        operands: Iterable[TensorStructInfo],
        result: TensorStructInfo,
    ) -> ArithmeticTime:
        """The arithmetic of one application of `op`; unknown shapes count as nothing."""
        if op in self.prices.operators:
            applied = self._applied(attrs, operands, result)
            return ArithmeticTime(0.0, self.prices.computing(op, applied))
        flops = self.flops(op, attrs, operands, result) or 0.0
        return ArithmeticTime(flops / self.profile.peak_of(result.dtype))

    def reading(self, info: TensorStructInfo) -> float:
        """Seconds to read a tensor at full bandwidth."""
        return self.profile.moving(self.nbytes(info) or 0.0)

    def _applied(
        self,
        attrs: Mapping[str, Attr],
        operands: Iterable[TensorStructInfo],
        result: TensorStructInfo,
    ) -> Applied:
        return Applied(attrs, tuple(map(self.extents, operands)), self.extents(result))

    def _step(self, step: Step, operands: Sequence[TensorStructInfo]) -> ArithmeticTime:
        """The arithmetic of one application of `step`; of steps that are alike, computed once."""
        key = (step.op.name, step.attrs, id(step.struct_info), *map(id, operands))
        if key not in self._steps:  # the sizes keep the struct infos, so no identity is reused
            of = step.op.name, dict(step.attrs), operands, step.struct_info
            self._steps[key] = self.computing(*of)
        return self._steps[key]

    def kernel(self, kernel: Kernel, schedule: Schedule) -> float:
        """Seconds for one run of `kernel`, all of whose shapes are known."""
        if schedule.anchor == "view":
            return VIEW
        read = math.fsum(map(self._read, range(len(kernel.inputs)), repeat(kernel)))
        written = math.fsum(self.nbytes(kernel.info(value)) or 0.0 for value in kernel.outputs)
        seconds = self._busy(read + written, self._arithmetic(kernel), schedule)
        modelled = self.profile.launch + seconds + _STEP * len(kernel.steps)
        return self.prices.of_kernel(kernel, self.sizes, modelled)

    def operator(
        self,
        op: str,
        attrs: Mapping[str, Attr],
        operands: Sequence[TensorStructInfo],
        results: Sequence[TensorStructInfo],
        schedule: Schedule | None,
    ) -> float:
        """Seconds for `op` outside of kernels: by its own loops, or called at run time.

        Unknown sizes count as nothing.
        """
        written = math.fsum(self.nbytes(info) or 0.0 for info in results)
        read = [self.nbytes(info) or 0.0 for info in operands]
        if op in READS_RESULT and read:
            read[0] = min(read[0], written)
        arithmetic = ArithmeticTime(0.0)
        if results:
            arithmetic = self.computing(op, attrs, operands, results[0])
        moved = math.fsum((*read, written))
        if schedule is None:
            busy = max(self.profile.moving(moved), arithmetic.at_peak) / _RUNTIME_SHARE
            return RUNTIME_CALL + busy + arithmetic.stated
        return self.profile.launch + self._busy(moved, arithmetic, schedule)

    def call(self, name: str, operands: Sequence[TensorStructInfo], result: StructInfo) -> float:
        """Seconds for a call of the function `name`, which has a price."""
        first = result.fields[:1] if isinstance(result, TupleStructInfo) else (result,)
        out = next((i for i in first if isinstance(i, TensorStructInfo)), TensorStructInfo())
        shapes, dtypes = tuple(map(self.extents, operands)), tuple(i.dtype for i in operands)
        return self.prices.of_call(name, PricedCall(shapes, dtypes, self.extents(out), out.dtype))

    def _busy(self, moved: float, arithmetic: ArithmeticTime, schedule: Schedule) -> float:
        """Seconds to move bytes and to compute, at the schedule's shares of the machine's peak."""
        memory = self.profile.moving(moved) / schedule.bandwidth
        computing = arithmetic.at_peak / schedule.flops
        return max(memory, computing) + _HIDDEN * min(memory, computing) + arithmetic.stated

    def _read(self, value: int, kernel: Kernel) -> float:
        """The bytes that `kernel` reads of its input `value`: of a sliced one only the slices."""
        source = kernel.inputs[value]
        if source.scalar is not None:
            return 0.0
        whole = self.nbytes(source.struct_info) or 0.0
        users = [s for s in kernel.steps if value in s.values]
        if not all(s.op.name in READS_RESULT and s.values[0] == value for s in users):
            return whole
        return min(whole, math.fsum(self.nbytes(s.struct_info) or 0.0 for s in users))

    def _arithmetic(self, kernel: Kernel) -> ArithmeticTime:
        """Seconds for the steps of `kernel`, each counted as often as it is computed.

        A step before the first reduction or product is computed inside the loops of its user: below
        a broadcast, once for each element of the *broadcast* tensor.  A matmul reads its right
        operand as it is stored, and widens it while it multiplies.
        """
        count = len(kernel.inputs)
        values = [step.values for step in kernel.steps]
        anchors = [*map(_is_anchor, kernel.steps)]
        widened = {s.values[1] for s in kernel.steps if s.op.name == "matmul"}
        kept: list[bool] = [False] * count
        for operands, anchor in zip(values, anchors, strict=True):
            kept.append(anchor or any([kept[v] for v in operands]))
        runs = [0.0] * (count + len(kernel.steps))
        at_peak, stated = 0.0, 0.0
        for number in range(len(kernel.steps) - 1, -1, -1):
            step, value = kernel.steps[number], count + number
            own = self.elements(step.struct_info) or 0.0
            runs[value] = own if kept[value] else max(own, runs[value])
            if not anchors[number]:
                for operand in values[number]:
                    runs[operand] = max(runs[operand], runs[value])
            if value in widened and step.op.name == "astype":
                continue
            each = self._step(step, [kernel.info(v) for v in values[number]])
            again = runs[value] / own if own else 1.0
            at_peak += again * each.at_peak
            stated += again * each.stated
        return ArithmeticTime(at_peak, stated)


def _is_anchor(step: Step) -> bool:
    return not step.op.elementwise and step.op.name not in MOVEMENT
