"""Left operands of which a block's rows would share a few places of the first-level cache.

A micro-kernel reads a number of each of its rows at each step of the depth.  Where rows are a power
of two apart, as those of 1024 numbers are, their lines are all in one set, and evict each other
while a line is read: the rows are copied then, each a line further.  On Zen 3 that is 6 to 12 % of
a product of 128 rows with a packed matrix.  Beside panels, which are copied by column, rows are
read at full rate wherever they are.
"""

from dataclasses import replace
from math import gcd

from relax_egraph.lower.emit.machine import scheduled_machine
from relax_egraph.lower.intrinsics.tile_sizes import micro_tile
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.product import Product
from relax_egraph.lower.schedule.stages import Stage
from relax_egraph.tir.expr import Buffer
from relax_egraph.tir.rewrite import variables

FEWEST_COLUMNS = 512
"""The minimal columns of a product that takes so long that a copy of the left operand does not
matter: 2 % of its time."""


def left_apart(p: Product, names: Names) -> tuple[Product, tuple[Stage, ...]]:
    """`p`, perhaps with a copy of its left operand, and the copying; none where it lies well.

    What is not constant in the depth or in the distance of rows lies well by chance.
    """
    row, depth, columns = p.row, p.depth, p.column.extent
    if row is None or depth is None or p.over or p.a_step != 1:
        return p, ()
    if not isinstance(depth.extent, int) or not isinstance(p.a_row, int):
        return p, ()
    if not isinstance(columns, int) or columns < FEWEST_COLUMNS:
        return p, ()
    tall = micro_tile(scheduled_machine(), p.bits).rows
    if (isinstance(row.extent, int) and row.extent < tall) or not share_sets(p.a_row, p.bits):
        return p, ()
    read = variables(p.a)
    axes = (*(a for a in p.batch if a.var in read), row, depth)
    indices = tuple(a.var for a in axes)
    extents = (*(a.extent for a in axes[:-1]), stride_of(depth.extent, p.bits))
    copy = Buffer(names.fresh("left"), extents, p.a.buffer.dtype)
    stage = Stage(copy.name, copy, axes, indices, p.a)
    return replace(p, a=copy[indices], a_row=extents[-1]), (stage,)


def share_sets(stride: int, bits: int) -> bool:
    """Whether lines of a micro-kernel's rows, `stride` elements of `bits` apart, evict each other.

    Half the ways of a set are for them, the rest is for what else is read meanwhile.
    """
    machine = scheduled_machine()
    way = machine.first.size // machine.first.ways
    places = way // gcd(stride * bits // 8, way)
    return 2 * micro_tile(machine, bits).rows > places * machine.first.ways


def stride_of(depth: int, bits: int) -> int:
    """The distance of rows of so many elements that lie well, in whole lines."""
    line = scheduled_machine().line_of(bits)
    stride = -(-depth // line) * line
    return stride + line if share_sets(stride, bits) else stride
