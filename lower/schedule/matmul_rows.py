"""Products followed by reductions of their rows: softmax, norms, sums along the last axis.

A block of rows is computed by the micro-kernel ``gemm_tile`` over all columns; the stages of its
rows follow while it is in the second-level cache.  Blocks are independent.  If there are too few of
them for several threads, or the right operand has to be copied first, the whole product is
computed first, in blocks of rows and columns that threads share, and then the rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from relax_egraph.ir import dims
from relax_egraph.lower.emit.machine import scheduled_machine
from relax_egraph.lower.intrinsics.tile_sizes import (
    BLOCK_COLUMNS,
    block_rows,
    copied_from,
    micro_tile,
)
from relax_egraph.lower.library.matmul_rows import MOST_COLUMNS
from relax_egraph.lower.schedule.cut import cut
from relax_egraph.lower.schedule.epilogue import Epilogue, Point
from relax_egraph.lower.schedule.in_place import right_in_place
from relax_egraph.lower.schedule.loops import around, bound, parallel, store_loops
from relax_egraph.lower.schedule.matmul import all_blocks
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.packed import packed_right
from relax_egraph.lower.schedule.product import Product, match_contraction
from relax_egraph.lower.schedule.product_parts import (
    PackedOperand,
    Parts,
    assemble_product,
    packed_operand,
    parts_of,
)
from relax_egraph.lower.schedule.rows import all_rows, are_in_rows, lender_of, one_row
from relax_egraph.lower.schedule.scheduled import Scheduled
from relax_egraph.lower.schedule.sizes import Condition, at_most, both, choice, exceeds
from relax_egraph.lower.schedule.stages import Axis, Stage
from relax_egraph.lower.schedule.tiles import (
    cut_evenly,
    fill,
    target_of,
)
from relax_egraph.tir.expr import Buffer, BufferLoad, TirExpr, TirVar
from relax_egraph.tir.rewrite import rewrite, substitute
from relax_egraph.tir.stmt import For, PrimFunc, Stmt, TirBlock, seq

BLOCK = 1 << 16
"""The elements of a block, 256 KiB: beside the operands of its tiles in the second-level cache."""

FEWEST_ROWS = 48
"""The minimal rows of a block, each of which reads the whole right operand."""

FEWEST_BLOCKS = 4
"""The minimal number of blocks that are computed one by one."""


def apply(function: PrimFunc, stages: Sequence[Stage]) -> Scheduled | None:
    """The schedule of `function` if it is one product, and reductions and maps of its rows.

    Maps that are too expensive to be inlined are computed before.  A constant right operand is
    packed.
    """
    parts = parts_of(function, stages, hoist=True)
    if parts is None or not _reduces_rows(parts):
        return None
    chain = _chain_of(parts, function.outputs)
    if chain is None:
        return None
    names = Names.beside(function)
    before = [store_loops((s,), names, "parallel") for s in parts.before]
    right = packed_operand(function, parts, chain.product)
    nest = choice(
        _fits_blocks(chain.product, right),
        lambda: _by_blocks(chain, right, names),
        lambda: _product_first(chain, right, names),
    )
    return assemble_product(function, "matmul_rows", [*before, nest], right)


def _reduces_rows(parts: Parts) -> bool:
    """Whether the stages after the product reduce its rows, and compute with the results."""
    depth = len(parts.product.axes) - 1
    return any(s.reduction for s in parts.rest) and are_in_rows(parts.rest, depth, parts.product)


@dataclass(frozen=True, slots=True)
class _Chain:
    """A product, and the stages `rest` of its rows, whose leading axes are `axes`.

    The product `is_stored` in one of `outputs`: it is an output, or lies where one is stored later.
    """

    product: Product
    rest: tuple[Stage, ...]
    axes: tuple[Axis, ...]
    outputs: tuple[Buffer, ...]
    is_stored: bool

    @property
    def taken(self) -> tuple[Buffer, ...]:
        """The outputs whose rows other intermediates may not use."""
        return (self.product.stage.buffer,) if self.is_stored else ()

    def with_product_in(self, buffer: Buffer) -> "_Chain":
        """The same with the product in `buffer`, which has its shape."""
        old = self.product.stage.buffer
        stage = replace(self.product.stage, buffer=buffer)
        rest = tuple(replace(s, value=substitute(s.value, {}, {old: buffer})) for s in self.rest)
        return replace(self, product=replace(self.product, stage=stage), rest=rest)


def _chain_of(parts: Parts, outputs: tuple[Buffer, ...]) -> _Chain | None:
    """The product of `parts` and the stages after it, with common variables for their rows."""
    axes = parts.product.axes[:-1]
    rest = tuple(_over(s, axes) for s in parts.rest)
    p = match_contraction(parts.product, rest)
    if p is None or p.column.var is not parts.product.axes[-1].var:
        return None
    chain = _Chain(p, rest, axes, outputs, parts.is_output)
    lender = None if parts.is_output else lender_of((parts.product, *rest), 0, outputs)
    return replace(chain, is_stored=True).with_product_in(lender) if lender else chain


def _over(stage: Stage, axes: tuple[Axis, ...]) -> Stage:
    """`stage` with `axes` as its leading axes."""
    values: dict[TirVar, TirExpr] = {
        own.var: a.var for own, a in zip(stage.axes, axes, strict=False)
    }
    return replace(bound(stage, values), axes=(*axes, *stage.axes[len(axes) :]))


# --- the product first --------------------------------------------------------------------


def _product_first(chain: _Chain, right: PackedOperand | None, names: Names) -> Stmt:
    """The whole product, and then its rows."""
    room: tuple[Buffer, ...] = ()
    if not chain.is_stored:
        old = chain.product.stage.buffer
        room = (Buffer(names.fresh(old.name), old.shape, old.dtype),)
        chain = chain.with_product_in(room[0])
    product = all_blocks(Epilogue(chain.product, (), is_output=True), right, names)
    body = seq(product, all_rows(chain.rest, chain.axes, chain.outputs, names, chain.taken))
    return TirBlock("product", (), body, allocs=room) if room else body


# --- block by block -----------------------------------------------------------------------


def _fits_blocks(p: Product, right: PackedOperand | None) -> Condition:
    """Whether there are enough blocks for threads, each in the cache and reading its operand."""
    if p.row is None or p.over or (right is None and p.b_column != 1):
        return False
    columns, depth = p.column.extent, p.depth.extent if p.depth else 1
    rows = dims.product((*(a.extent for a in p.batch), p.row.extent))
    several = exceeds(rows, FEWEST_BLOCKS * _most_rows(p) - 1)
    condition = both(several, at_most(columns, MOST_COLUMNS))
    if right is not None:
        return condition
    return both(
        condition, at_most(dims.mul(depth, columns), copied_from(scheduled_machine(), p.bits)[1])
    )


def _most_rows(p: Product) -> int:
    """The maximal rows of a block."""
    columns = p.column.extent
    machine = scheduled_machine()
    tall = micro_tile(machine, p.bits).rows
    rows = BLOCK // columns // tall * tall if isinstance(columns, int) else 0
    return min(max(rows, FEWEST_ROWS), block_rows(machine, p.bits))


def _by_blocks(chain: _Chain, right: PackedOperand | None, names: Names) -> Stmt:
    """Blocks of rows: all columns of the product, and then the stages of each row."""
    p = chain.product
    assert p.row is not None, "a single row is no block"
    batch, values = names.renamed(p.batch, "b")
    rows = cut_evenly(p, _most_rows(p), names)
    columns = cut(p.column.extent, BLOCK_COLUMNS, "jo", names)
    i = names.var("i")
    point: Point = {**p.values, **values, p.row.var: rows.start + i}
    if chain.is_stored:
        rest, room = chain.rest, ()
        corner = target_of(p, {**values, **p.point(rows.start, columns.start)})
        place, place_row = corner, p.c_row
    else:
        block = Buffer(names.fresh("block"), (rows.size, p.column.extent), p.dtype)
        rest, room = tuple(_in_block(s, p.stage.buffer, block, i) for s in chain.rest), (block,)
        place, place_row = block[0, columns.start], p.column.extent
    if right is None:
        operand = right_in_place(p, columns, values)
    else:
        operand = packed_right(p, right.panels, right.buffer, rows, columns, values)
    tiles = fill(p, operand, rows, columns, values, place, place_row, names)
    row = one_row(
        rest, [point[a.var] for a in chain.axes], chain.outputs, names, "serial", chain.taken
    )
    body = seq(around(columns.blocks, tiles), For(i, rows.count, "serial", row))
    return parallel((*batch, *rows.blocks), TirBlock("rows", (), body, allocs=room))


def _in_block(stage: Stage, product: Buffer, block: Buffer, row: TirVar) -> Stage:
    """`stage` with reads of the `product` from row number `row` of `block`."""

    def change(e: TirExpr) -> TirExpr:
        if not isinstance(e, BufferLoad) or e.buffer is not product:
            return e
        return block[row, e.indices[-1]]

    return replace(stage, value=rewrite(stage.value, change))
