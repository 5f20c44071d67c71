"""Kernels of one attention, which reads its operands, and puts its result, where they lie."""

from collections.abc import Iterable

from relax_egraph.ir.kernel import Kernel, Schedule
from relax_egraph.ir.struct_info import Shape
from relax_egraph.lower.library.maps import axes_of
from relax_egraph.lower.library.operators import schedule_of_operator
from relax_egraph.lower.library.proofs import ATTENTION, numbered, same, shape_of
from relax_egraph.lower.library.views import RESHAPES, Lies, lies

KEYS = 1
"""The axis of the keys, and of the values, along which they may be in several tensors."""


def attention(kernel: Kernel) -> Schedule | None:
    """One attention of what inputs are moved to, perhaps with its axes in another order."""
    found = [(v, s) for v, s in numbered(kernel) if s.op.name in ATTENTION]
    if len(found) != 1:
        return None
    value, step = found[0]
    if not _is_result(kernel, value):
        return None
    operands = [lies(kernel, v) for v in step.values]
    known = [x for x in operands if x]
    if len(known) < len(operands) or not _are_read(*known):
        return None
    infos = [kernel.info(v) for v in step.values]
    return schedule_of_operator(step.op.name, {}, infos, (step.struct_info,))


def _are_read(queries: Lies, keys: Lies, values: Lies, *bias: Lies) -> bool:
    """Whether vectors are contiguous, or keys side by side, and several tensors cut alike."""
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
    """Whether the kernel writes `value`, perhaps with its axes in another order but for the last.

    Axes of extent 1 may be anywhere, and nothing else is computed after it.
    """
    shape = shape_of(kernel, value)
    order = _wide(range(len(shape)), shape)
    for after in kernel.steps[value + 1 - len(kernel.inputs) :]:
        if after.values != (value,):
            return False
        before, value = shape_of(kernel, value), value + 1
        if after.op.name == "permute_dims":
            places = _wide(range(len(before)), before)
            order = tuple(order[places.index(k)] for k in _wide(axes_of(after), before))
        elif after.op.name not in RESHAPES or not same(
            *map(_extents, (before, shape_of(kernel, value)))
        ):
            return False
    last = _wide(range(len(shape)), shape)[-1:]
    return kernel.outputs == (value,) and order[-1:] == last


def _wide(axes: Iterable[int], shape: Shape) -> tuple[int, ...]:
    """Those of `axes` of `shape` that have more extents than 1."""
    return tuple(k for k in axes if shape[k] != 1)


def _extents(shape: Shape) -> Shape:
    return tuple(d for d in shape if d != 1)
