"""Copies and permutations of axes.

A permutation runs in blocks where it reads and writes along different axes.
"""

from collections.abc import Sequence

from relax_egraph.ir import dims
from relax_egraph.lower.schedule.index import steps
from relax_egraph.lower.schedule.inline import inline
from relax_egraph.lower.schedule.loops import around, bound, collapse, store_loops
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.scheduled import finished
from relax_egraph.lower.schedule.stages import Axis, Stage
from relax_egraph.tir.expr import BufferLoad, TirExpr, TirVar, binary, from_dim
from relax_egraph.tir.stmt import For, PrimFunc, Stmt, Store

BLOCK = 16
"""How many elements a block has along each of the two axes: a cache line of float32."""


def apply(function: PrimFunc, stages: Sequence[Stage]) -> PrimFunc | None:
    """The schedule of `function` if all it does is to copy an input, perhaps with permuted axes."""
    stages = inline(stages, function.outputs)
    if len(stages) != 1:
        return None
    names = Names.beside(function)
    if _copies(stages[0]):
        return finished(function, "view", [store_loops(stages, names)])
    if _permutes(stages[0]):
        return finished(function, "movement", [nest(stages[0], names)])
    return None


def _copies(stage: Stage) -> bool:
    """Whether the elements stay in order, whatever the shape."""
    read = stage.value
    if not isinstance(read, BufferLoad) or stage.reduction:
        return False
    given, made = dims.product(read.buffer.shape), dims.product(stage.buffer.shape)
    axes = collapse(stage.axes, [stage]).axes
    moves = steps(read.buffer, read.indices, [a.var for a in axes])
    return dims.equal(given, made) and len(axes) <= 1 and moves in ((), (1,))


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
        return store_loops((stage,), names)
    outer, renamed = names.renamed([a for a in order.axes[:-1] if a is not read], "i")
    values = dict(renamed)
    blocks: list[Axis] = []
    inner: list[tuple[TirVar, TirExpr]] = []
    for axis in (read, order.axes[-1]):
        block = Axis(names.var("o"), dims.floordiv(dims.add(axis.extent, BLOCK - 1), BLOCK))
        within = names.var("i")
        rest = from_dim(axis.extent) - block.var * BLOCK
        blocks.append(block)
        inner.append((within, binary("min", BLOCK, rest)))
        values[axis.var] = block.var * BLOCK + within
    moved = bound(joined, values)
    (row, rows), (column, columns) = inner
    body = For(column, columns, "vectorized", Store(moved.buffer, moved.indices, moved.value))
    return around((*outer, *blocks), For(row, rows, "serial", body))
