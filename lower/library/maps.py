"""Kernels without a product or a reduction: maps, broadcasts, permutations, slices."""

from relax_egraph.ir.kernel import Kernel, Schedule, Step
from relax_egraph.lower.library.proofs import ones, same, shape_of

MOVES = frozenset({"broadcast_to", "permute_dims", "strided_slice"})

ELEMENTWISE = Schedule("elementwise", flops=0.5, bandwidth=0.9)
STRIDED = Schedule("elementwise", flops=0.1, bandwidth=0.15)


def movement(step: Step) -> Schedule:
    """The schedule of a permutation: copies of rows if it keeps the last axis, else of elements."""
    keeps_last = _keeps_last_axis(step)
    return Schedule("movement", 1.0, 0.8 if keeps_last else 0.2)


def elementwise(kernel: Kernel) -> Schedule | None:
    """The schedule of maps, broadcasts and permutations whose results have one shape."""
    steps = kernel.steps
    if not all(s.op.elementwise or s.op.name in MOVES for s in steps):
        return None
    shapes = [shape_of(kernel, o) for o in kernel.outputs]
    if not all(same(shape, shapes[0]) for shape in shapes):
        return None
    if all(s.op.name == "permute_dims" for s in steps):
        return None  # a rule composes permutations into one
    return ELEMENTWISE if all(map(_reads_along_rows, steps)) else STRIDED


def _reads_along_rows(step: Step) -> bool:
    """Whether adjacent elements of a row of the result are adjacent in the operand, too."""
    if step.op.name == "permute_dims":
        return _keeps_last_axis(step)
    return step.op.name != "strided_slice" or dict(step.attrs)["strides"] in (None, ones(step))


def is_map(kernel: Kernel, step: Step) -> bool:
    """Whether each element of the result is computed from one of each operand, where it lies."""
    return step.op.elementwise or step.op.name == "broadcast_to" or is_slice_of_input(kernel, step)


def is_slice_of_input(kernel: Kernel, step: Step) -> bool:
    """Whether `step` reads a part of an input in place."""
    return step.op.name == "strided_slice" and step.values[0] < len(kernel.inputs)


def _keeps_last_axis(step: Step) -> bool:
    axes = axes_of(step)
    return not axes or axes[-1] == len(axes) - 1


def axes_of(step: Step) -> tuple[int, ...]:
    """The axes of a permutation, as nonnegative numbers."""
    rank = step.struct_info.ndim
    axes = dict(step.attrs)["axes"]
    if not isinstance(axes, tuple):
        return tuple(range(rank))[::-1]
    return tuple(int(a) % rank for a in axes)
