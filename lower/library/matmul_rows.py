"""Kernels of a matrix product followed by reductions of its rows, and maps of these."""

from collections.abc import Collection

from relax_egraph.ir.kernel import Kernel, Schedule, Step
from relax_egraph.ir.struct_info import Shape
from relax_egraph.lower.library.maps import is_map
from relax_egraph.lower.library.operators import ROWS
from relax_egraph.lower.library.products import (
    BANDWIDTH,
    InnerProduct,
    dependents,
    product_of_inputs,
    share_of_product,
)
from relax_egraph.lower.library.proofs import numbered, same, shape_of
from relax_egraph.lower.library.rows import CHAINED, reduced_depth

MOST_COLUMNS = 1 << 12
"""The maximal columns of a block of rows, which is to stay in the second-level cache."""

_FLOPS = {"nn.softmax": 30, "exp": 20, "divide": 8}
"""The flops for an element by steps that take more than one."""


def matmul_rows(kernel: Kernel) -> Schedule | None:
    """The schedule of a product of inputs, and reductions and maps of its rows."""
    p = product_of_inputs(kernel)
    if p is None:
        return None
    *_, columns = p.shape
    if isinstance(columns, int) and columns > MOST_COLUMNS:
        return None
    rows, below = p.shape[:-1], dependents(kernel, p.value)
    for value, step in numbered(kernel):
        if value in below:
            if not _is_of_rows(kernel, step, rows, below):
                return None
        elif value != p.value and not is_map(kernel, step):
            return None
    if not all(o == p.value or o in below for o in kernel.outputs):
        return None
    return Schedule("matmul_rows", _share(kernel, p), BANDWIDTH)


def _share(kernel: Kernel, p: InnerProduct) -> float:
    """The share of peak arithmetic: those of a product and of rows, by the flops of each.

    So the kernel costs as much arithmetic as a product, with maps, and a kernel of its rows.  Maps
    behind all that reads a reduction cost as much there as in a later kernel: they are the
    product's.
    """
    share = share_of_product(p)
    if not isinstance(p.depth, int):
        return share
    product, rows, behind = 2 * p.depth, 0, 0
    reduced, repeated = set[int](), set[int]()
    for value, step in numbered(kernel):
        if step.op.name in CHAINED or any(v in reduced for v in step.values):
            reduced.add(value)
            behind += _FLOPS.get(step.op.name, 1)
            if step.op.name == "broadcast_to":
                repeated.add(value)
            elif step.op.name in CHAINED or any(v in repeated for v in step.values):
                rows, behind = rows + behind, 0
    return (product + rows) / (product / share + rows / ROWS.flops)


def _is_of_rows(kernel: Kernel, step: Step, rows: Shape, below: Collection[int]) -> bool:
    """Whether `step` reduces or maps the `rows` of its operands, as far as they are `below`."""
    shape, depth = step.struct_info.dims or (), len(rows)
    if len(shape) < depth or not same(shape[:depth], rows):
        return False
    if step.op.name in CHAINED:
        is_row = len(shape_of(kernel, step.values[0])) == depth + 1
        return is_row and reduced_depth(kernel, step) == depth
    computed = (v for v in step.values if v in below)
    return is_map(kernel, step) and all(len(shape_of(kernel, v)) == len(shape) for v in computed)
