"""Kernels of a single attention, which reads strided operands and writes its result in place."""

from collections.abc import Iterable

from relax_egraph.ir.kernel import Kernel, Schedule
from relax_egraph.ir.struct_info import Shape
from relax_egraph.lower.library.maps import axes_of
from relax_egraph.lower.library.operators import schedule_of_operator
from relax_egraph.lower.library.proofs import ATTENTION, numbered, same, shape_of
from relax_egraph.lower.library.views import RESHAPES, StridedLayout, layout_of

KEYS = 1
"""The axis along which keys and values may be split into several tensors."""


def attention(kernel: Kernel) -> Schedule | None:
    """The schedule of one attention of moved inputs, perhaps with its result's axes permuted."""
    attentions = [(v, s) for v, s in numbered(kernel) if s.op.name in ATTENTION]
    if len(attentions) != 1:
        return None
    value, step = attentions[0]
    if not _is_result(kernel, value):
        return None
    operands = [layout_of(kernel, v) for v in step.values]
    known = [x for x in operands if x]
    if len(known) < len(operands) or not _are_read(*known):
        return None
    infos = [kernel.info(v) for v in step.values]
    return schedule_of_operator(step.op.name, {}, infos, (step.struct_info,))


def _are_read(
    queries: StridedLayout, keys: StridedLayout, values: StridedLayout, *bias: StridedLayout
) -> bool:
    """Whether keys or values are contiguous in a supported axis, and split alike."""
    if any(x.cuts() for x in (queries, *bias)):
        return False
    if any(x.cuts() and x.axis != KEYS for x in (keys, values)):
        return False
    if not all(1 in (p.strides[KEYS], p.strides[-1]) for p in keys.pieces):
        return False
    if not all(p.strides[-1] == 1 for p in values.pieces):
        return False
    return not (keys.cuts() and values.cuts()) or same(keys.cuts(), values.cuts())


def _is_result(kernel: Kernel, value: int) -> bool:
    """Whether the kernel writes `value`, perhaps with axes other than the last one permuted.

    Axes of extent 1 may be anywhere; nothing else is computed from `value`.
    """
    shape = shape_of(kernel, value)
    order = _not_unit(range(len(shape)), shape)
    for after in kernel.steps[value + 1 - len(kernel.inputs) :]:
        if after.values != (value,):
            return False
        before, value = shape_of(kernel, value), value + 1
        if after.op.name == "permute_dims":
            places = _not_unit(range(len(before)), before)
            order = tuple(order[places.index(k)] for k in _not_unit(axes_of(after), before))
        elif after.op.name not in RESHAPES or not same(
            *map(_extents, (before, shape_of(kernel, value)))
        ):
            return False
    last = _not_unit(range(len(shape)), shape)[-1:]
    return kernel.outputs == (value,) and order[-1:] == last


def _not_unit(axes: Iterable[int], shape: Shape) -> tuple[int, ...]:
    """The elements of `axes` with an extent other than 1 in `shape`."""
    return tuple(k for k in axes if shape[k] != 1)


def _extents(shape: Shape) -> Shape:
    return tuple(d for d in shape if d != 1)
