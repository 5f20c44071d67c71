"""Matrix products: blocks by the micro-kernel ``gemm_tile``, with the epilogue on the hot block.

The output is cut into blocks, whose sizes follow from the caches: see `tile_sizes`.  A block is
computed over the whole depth into a local buffer, from which the epilogue computes the outputs;
without an epilogue, the block is computed in the output.  A right operand that is not constant is
read in place, or copied to panels if it is large and used by many rows, or streamed for few rows.
"""

from collections.abc import Sequence

from relax_egraph.ir import dims
from relax_egraph.lower.emit.machine import scheduled_machine
from relax_egraph.lower.intrinsics.tile_sizes import copied_from, streamed_rows
from relax_egraph.lower.schedule.epilogue import Epilogue
from relax_egraph.lower.schedule.gemv import few_rows
from relax_egraph.lower.schedule.in_place import in_place
from relax_egraph.lower.schedule.inline import reads_of
from relax_egraph.lower.schedule.left_apart import left_apart
from relax_egraph.lower.schedule.loops import store_loops
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.packed import by_packed
from relax_egraph.lower.schedule.panels import by_panels
from relax_egraph.lower.schedule.product import match_contraction
from relax_egraph.lower.schedule.product_parts import (
    PackedOperand,
    assemble_product,
    packed_operand,
    parts_of,
)
from relax_egraph.lower.schedule.scheduled import Scheduled
from relax_egraph.lower.schedule.sizes import at_most, both, choice, exceeds
from relax_egraph.lower.schedule.stages import Stage
from relax_egraph.tir.stmt import PrimFunc, Stmt

LARGEST_BY_BLOCKS = 1 << 17
"""The maximal elements of a right operand, 512 KiB, for which few rows run by blocks."""


def apply(function: PrimFunc, stages: Sequence[Stage]) -> Scheduled | None:
    """The schedule of `function` if it is one product and maps of it of the same shape.

    Other stages that are too expensive to be inlined are computed before.  A constant right operand
    is packed.
    """
    parts = parts_of(function, stages)
    if parts is None or not all(follows(s, parts.product, parts.rest) for s in parts.rest):
        return None
    p = match_contraction(parts.product, parts.rest)
    if p is None:  # a map reads some of the axes that would be the rows
        return None
    names = Names.beside(function)
    right = packed_operand(function, parts, p)
    p, copies = left_apart(p, names) if right else (p, ())
    before = [store_loops((s,), names, "parallel") for s in (*parts.before, *copies)]
    nest = all_blocks(Epilogue(p, parts.rest, parts.is_output), right, names)
    return assemble_product(function, "matmul", [*before, nest], right, [s.buffer for s in copies])


def follows(stage: Stage, product: Stage, rest: Sequence[Stage]) -> bool:
    """Whether `stage` can be computed block by block with `product` and the stages `rest`."""
    return (
        stage.reduction is None
        and stage.axes == product.axes
        and all(
            r.indices == stage.indices for c in (product, *rest) for r in reads_of(stage, c.buffer)
        )
    )


def tiles(product: Stage, rest: Sequence[Stage], names: Names, *, is_output: bool) -> Stmt:
    """`product` and the stages `rest` that follow it, in one nest over blocks.

    `is_output` states whether the product itself is stored, too.
    """
    p = match_contraction(product, rest)
    assert p is not None, f"{product.name} is no product"
    return all_blocks(Epilogue(p, tuple(rest), is_output), None, names)


def all_blocks(epilogue: Epilogue, right: PackedOperand | None, names: Names) -> Stmt:
    """The nest over the blocks of a product and its epilogue, for the right operand as it lies."""
    if right is not None:
        return by_packed(epilogue, right.panels, right.buffer, names)
    p = epilogue.product
    if p.b_column != 1:
        return by_panels(epilogue, names)
    if p.over:
        return in_place(epilogue, names)
    rows = p.row.extent if p.row else 1
    elements = dims.mul(p.depth.extent if p.depth else 1, p.column.extent)
    most = streamed_rows(scheduled_machine(), p.bits)
    is_few = both(at_most(rows, most), exceeds(elements, LARGEST_BY_BLOCKS))
    fewest_rows, most_elements = copied_from(scheduled_machine(), p.bits)
    is_large = both(exceeds(rows, fewest_rows - 1), exceeds(elements, most_elements))
    return choice(
        is_few,
        lambda: few_rows(epilogue, most, names),
        lambda: choice(
            is_large, lambda: by_panels(epilogue, names), lambda: in_place(epilogue, names)
        ),
    )
