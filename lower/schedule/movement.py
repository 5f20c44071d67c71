"""Copies and permutations of axes.

A permutation that reads and writes along different axes transposes blocks.
"""

from collections.abc import Sequence

from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import TABLE
from relax_egraph.lower.intrinsics.transpose import name_of
from relax_egraph.lower.schedule.cut import cut
from relax_egraph.lower.schedule.index import steps
from relax_egraph.lower.schedule.inline import inline
from relax_egraph.lower.schedule.loops import bound, collapse, parallel, store_loops
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.scheduled import Scheduled, assemble
from relax_egraph.lower.schedule.stages import Stage
from relax_egraph.lower.schedule.streaming import streaming
from relax_egraph.tir.expr import BufferLoad, from_dim
from relax_egraph.tir.stmt import PrimFunc, Stmt, TensorIntrinsic

ROWS, COLUMNS = 256, 16
"""The elements of a block along the axes of contiguous writes and of contiguous reads.

Many tiles follow one another in the result, which is written in long runs; but tiles are not side
by side: lines of the operand at a distance of a power of two would collide in the cache.
"""


def apply(function: PrimFunc, stages: Sequence[Stage]) -> Scheduled | None:
    """The schedule of `function` if it copies an input, perhaps with permuted axes."""
    stages = inline(stages, function.outputs)
    if len(stages) != 1:
        return None
    names = Names.beside(function)
    if _copies(stages[0]):
        copy = assemble(function, "view", [store_loops(stages, names, "parallel")])
        return streaming(copy, stages, ahead=False)
    if _permutes(stages[0]):
        return assemble(function, "movement", [nest(stages[0], names)])
    return None


def _copies(stage: Stage) -> bool:
    """Whether the elements keep their order, in any shape."""
    read = stage.value
    if not isinstance(read, BufferLoad) or stage.reduction:
        return False
    in_size, out_size = dims.product(read.buffer.shape), dims.product(stage.buffer.shape)
    axes = collapse(stage.axes, [stage]).axes
    moves = steps(read.buffer, read.indices, [a.var for a in axes])
    return dims.equal(in_size, out_size) and len(axes) <= 1 and moves in ((), (1,))


def _permutes(stage: Stage) -> bool:
    value = stage.value
    if not isinstance(value, BufferLoad) or stage.reduction:
        return False
    variables = [a.var for a in stage.axes]
    places = [variables.index(i) for i in value.indices if i in variables]
    complete = sorted(places) == list(range(len(variables))) and len(places) == len(value.indices)
    return complete and places != list(range(len(variables)))


def nest(stage: Stage, names: Names) -> Stmt:
    """The loops of a permutation."""
    order = collapse(stage.axes, [stage])
    joined = bound(stage, order.values)
    value = joined.value
    assert isinstance(value, BufferLoad)
    contiguous = [a for a in order.axes if a.var in value.indices]
    read = max(contiguous, key=lambda a: value.indices.index(a.var), default=None)
    if read is None or read is order.axes[-1]:
        return store_loops((stage,), names, "parallel")
    last = order.axes[-1]
    along = steps(value.buffer, value.indices, (read.var, last.var))
    across = steps(joined.buffer, joined.indices, (read.var, last.var))
    assert along is not None, "each index is an axis"
    assert across is not None, "each index is an axis"
    if along[0] != 1:  # the operand has an extent-1 part of its last axis
        return store_loops((stage,), names, "parallel")
    outer, renamed = names.renamed([a for a in order.axes[:-1] if a is not read], "i")
    write_blocks, read_blocks = (
        cut(last.extent, ROWS, "o", names),
        cut(read.extent, COLUMNS, "o", names),
    )
    moved = bound(joined, {**renamed, last.var: write_blocks.start, read.var: read_blocks.start})
    assert isinstance(moved.value, BufferLoad)
    places = ((moved.value.buffer, moved.value.indices), (moved.buffer, moved.indices))
    scalars = (from_dim(along[1]), from_dim(across[0]), write_blocks.count, read_blocks.count)
    body = TensorIntrinsic(name_of(TABLE[stage.buffer.dtype].bits), places, scalars)
    return parallel((*outer, *write_blocks.blocks, *read_blocks.blocks), body)
