"""Seconds of one operator on one device, and of collectives.

What is elementwise fuses with its neighbours: it costs its arithmetic.  Every other operator is a
kernel of its own.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from relax_egraph.extract import Hints, PricedCall, Prices, Pricing, Profile
from relax_egraph.extract.cost import RUNTIME_CALL
from relax_egraph.ir.expr import Attr
from relax_egraph.ir.kernel import Input, Kernel, Step
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import (
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from relax_egraph.lower.library import Library
from relax_egraph.shards.link import Link
from relax_egraph.shards.local import ALL_GATHER, ALL_REDUCE, SHARD

FREE = 1e-9
"""Seconds for what moves nothing, such as another shape: not 0, so that less of it is preferred."""

_VIEWS = ("reshape", "expand_dims", "squeeze", "flatten", "broadcast_to")
"""What kernels read without a copy."""


def prices_of_calls(profile: Profile, parts: int, link: Link) -> Prices:
    """The prices of collectives, and of cutting what a device has, as packed functions.

    A collective is a call at run time, beside the time on the link.
    """
    return Prices(
        calls={
            ALL_GATHER: lambda call: RUNTIME_CALL + link.all_gather(_nbytes(call), parts),
            ALL_REDUCE: lambda call: RUNTIME_CALL + link.all_reduce(_nbytes(call), parts),
            SHARD: lambda call: profile.launch + profile.moving(2 * _nbytes(call)),
        }
    )


def _nbytes(call: PricedCall) -> float:
    """The bytes of the result."""
    if call.result is None or call.dtype is None:
        return 0.0
    return math.prod(call.result) * np.dtype(call.dtype).itemsize


class DevicePrices:
    """Prices on one of `parts` devices of one kind, at the sizes in `hints`."""

    def __init__(self, profile: Profile, hints: Hints | None, parts: int, link: Link) -> None:
        self.parts = parts
        self.pricing = Pricing(profile, hints, prices_of_calls(profile, parts, link))
        self._library = Library()
        self._known: dict[object, float] = {}

    def call(self, name: str, result: TensorStructInfo) -> float:
        """Seconds of a collective, or of a cut, with this `result` on each device."""
        return self.pricing.call(name, (), result)

    def operator(
        self,
        op: Op,
        operands: Sequence[StructInfo | None],
        attrs: Mapping[str, Attr],
        result: TensorStructInfo,
    ) -> float:
        """Seconds for `op`: as a kernel of its own; if it is elementwise, its arithmetic alone."""
        if op.name in _VIEWS:
            return FREE
        key = (op, tuple(operands), tuple(attrs.items()), result)
        if key not in self._known:
            self._known[key] = self._priced(op, operands, attrs, result)
        return self._known[key]

    def _priced(
        self,
        op: Op,
        operands: Sequence[StructInfo | None],
        attrs: Mapping[str, Attr],
        result: TensorStructInfo,
    ) -> float:
        tensors = [t for o in operands for t in _tensors(o)]
        if op.elementwise:
            return FREE + self.pricing.computing(op.name, attrs, tensors, result)
        kernel = _kernel(op, operands, attrs, result)
        schedule = self._library.schedule_of(kernel) if kernel else None
        if kernel and schedule:
            return self.pricing.kernel(kernel, schedule)
        schedule = self._library.schedule_of_operator(op, dict(attrs), tensors, [result])
        return self.pricing.operator(op.name, attrs, tensors, [result], schedule)


def _tensors(info: StructInfo | None) -> list[TensorStructInfo]:
    fields = info.fields if isinstance(info, TupleStructInfo) else (info,)
    return [f for f in fields if isinstance(f, TensorStructInfo)]


def _kernel(
    op: Op,
    operands: Sequence[StructInfo | None],
    attrs: Mapping[str, Attr],
    result: TensorStructInfo,
) -> Kernel | None:
    """The kernel of `op`; ``None`` if it is not fusible."""
    if not op.fusible:
        return None
    inputs: list[Input] = []
    numbers: list[int | ShapeStructInfo] = []
    for info in operands:
        if isinstance(info, TensorStructInfo):
            numbers.append(len(inputs))
            inputs.append(Input(info))
        elif isinstance(info, ShapeStructInfo):
            numbers.append(info)
        else:
            return None
    step = Step(op, tuple(numbers), tuple(attrs.items()), result)
    return Kernel(tuple(inputs), (step,), (len(inputs),))
