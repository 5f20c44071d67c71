"""Kernels of reductions and of maps of their results, row by row."""

from relax_egraph.ir.kernel import Kernel, Schedule, Step
from relax_egraph.lower.library.maps import is_map
from relax_egraph.lower.library.operators import ROWS
from relax_egraph.lower.library.proofs import numbered, same, shape_of

CHAINED = frozenset({"sum", "max", "min", "mean", "nn.softmax"})
"""The operators that traverse a row more than once."""


def rows(kernel: Kernel) -> Schedule | None:
    """The schedule of reductions over trailing axes, and maps, with the same leading axes."""
    depths = set(reduced_depth(kernel, s) for s in kernel.steps if not is_map(kernel, s))
    depth = depths.pop() if len(depths) == 1 else None
    if depth is None:
        return None
    shapes = [shape_of(kernel, v) for v, _ in numbered(kernel)]
    rows = shapes[0][:depth]
    if any(len(s) < depth or not same(s[:depth], rows) for s in shapes):
        return None
    return ROWS if depth == 0 or all(_aligned(kernel, s) for s in kernel.steps) else None


def reduces_last_axis(kernel: Kernel, step: Step) -> bool:
    """Whether `step` is a reduction, other than softmax, along contiguous memory."""
    reduced = _reduced(kernel, step) or set[int]()
    is_chain = step.op.name == "nn.softmax"
    return not is_chain and len(shape_of(kernel, step.values[0])) - 1 in reduced


def _aligned(kernel: Kernel, step: Step) -> bool:
    """Whether broadcasting keeps the row axes of computed operands."""
    if not step.op.elementwise and step.op.name != "broadcast_to":
        return True
    rank = step.struct_info.ndim
    computed = (v for v in step.values if kernel.step(v) is not None)
    return all(len(shape_of(kernel, v)) == rank for v in computed)


def _reduced(kernel: Kernel, step: Step) -> set[int] | None:
    """The axes that `step` reduces; ``None`` if it is not a reduction."""
    if step.op.name not in CHAINED:
        return None
    rank = len(shape_of(kernel, step.values[0]))
    axis = dict(step.attrs)["axis"]
    if isinstance(axis, int):
        return {axis % rank}
    return {int(a) % rank for a in axis} if isinstance(axis, tuple) else set(range(rank))


def reduced_depth(kernel: Kernel, step: Step) -> int | None:
    """The number of leading axes of a reduction over all others; else ``None``."""
    rank = len(shape_of(kernel, step.values[0]))
    reduced = _reduced(kernel, step)
    depth = rank - len(reduced or ())
    return depth if reduced and reduced == set(range(depth, rank)) else None
