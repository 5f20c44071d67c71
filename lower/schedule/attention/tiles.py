"""Attention of many queries: tiles of scores, between two products by the micro-kernel.

Queries are processed in blocks, each a task of its own.  The keys of a block are transposed once
for all tiles of the queries; the scores of a tile are computed, replaced by powers, and multiplied
with the values.  Tiles that the mask hides are skipped.
"""

from collections.abc import Callable
from dataclasses import dataclass

from relax_egraph.lower.emit.machine import scheduled_machine
from relax_egraph.lower.intrinsics import tile_sizes
from relax_egraph.lower.intrinsics.transpose import name_of
from relax_egraph.lower.schedule.attention.mask import ALL
from relax_egraph.lower.schedule.attention.match import Attention
from relax_egraph.lower.schedule.attention.parts import (
    Operand,
    Parts,
    Values,
    at_most,
    multiply,
    number,
    parts,
    where_seen,
    within,
)
from relax_egraph.lower.schedule.attention.rows import Tile, absorb, copied_query
from relax_egraph.lower.schedule.attention.state import (
    EachRow,
    Row,
    State,
    begin,
    end,
    goes_on,
    room,
    state_of,
)
from relax_egraph.lower.schedule.index import steps
from relax_egraph.lower.schedule.loops import ZERO, parallel
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.product import bound_load
from relax_egraph.tir.expr import Buffer, TirExpr, binary, from_dim
from relax_egraph.tir.stmt import (
    For,
    Stmt,
    Store,
    TensorIntrinsic,
    TirBlock,
    seq,
)

BLOCK_ROWS = 512
"""The queries of a task, which share the transposed keys."""

TILE_ROWS = 64
MOST_KEYS = 512
"""The scores of a tile take 128 KiB of the second-level cache, beside the keys and values."""

MASKED_ROWS = 32
"""The queries of a tile with a mask: a smaller tile computes fewer hidden scores."""

STRIP = 64
"""The columns of the micro-kernel."""


def _most_keys() -> int:
    """The keys of a tile.

    A micro-kernel that is a cache line wide reads a part of each value, so it needs fewer of them
    to find the others in the first-level cache.
    """
    return MOST_KEYS if tile_sizes.strip(scheduled_machine()) == STRIP else MOST_KEYS // 2


def by_tiles(p: Attention, names: Names) -> Stmt:
    """The blocks of queries, each over all blocks of keys."""
    batch, fixed = names.renamed(p.batch, "b")
    block = parts(from_dim(p.rows), BLOCK_ROWS, "qo", names)
    # A hidden tile, or one without keys, does not initialize the sums.
    is_clear = p.seen != ALL or len(p.runs) > 1
    state = state_of(at_most(p.rows, BLOCK_ROWS), p.width, names, is_clear=is_clear)
    most = _most_keys()
    strips = room("strips", names, most // STRIP, p.size, STRIP)
    queries = room("queries", names, at_most(p.rows, _tile_rows(p)), p.size)
    scores = room("scores", names, at_most(p.rows, _tile_rows(p)), most)
    blocks: list[Stmt] = []
    copies: list[Buffer] = []
    for run in p.runs:
        keys = parts(from_dim(run.key.extent), most, "ko", names)
        values = _values(run, keys, fixed, names)
        buffers = (queries, strips, scores)
        tiles = _tiles(run, fixed, block, keys, state, buffers, values.place, names)
        work = seq(_transposed(run, strips, keys, fixed, names), *values.copy, tiles)
        first, last = block.start, block.start + block.count - 1
        blocks.append(keys.around(where_seen(run, first, last, keys, work)))
        copies += values.room
    rows = _each(p, fixed, block.start, block.count, names)
    body = seq(
        begin(p, state, block.count, names), *blocks, end(p, state, block.count, rows, names)
    )
    allocs = (queries, scores, strips, *copies, *state.buffers)
    return parallel(batch, block.around(TirBlock("queries", (), body, allocs=allocs), "parallel"))


def _tile_rows(p: Attention) -> int:
    """The number of queries of a tile."""
    return TILE_ROWS if p.seen == ALL else MASKED_ROWS


def _each(p: Attention, fixed: Values, first: TirExpr, count: TirExpr, names: Names) -> EachRow:
    """Loops over `count` queries from `first` on."""

    def each(body: Callable[[Row], Stmt]) -> Stmt:
        r = names.var("r")
        return For(r, count, "serial", body(Row(r, {**fixed, **p.at(first + r)})))

    return each


def _tiles(
    p: Attention,
    fixed: Values,
    block: Parts,
    keys: Parts,
    state: State,
    buffers: tuple[Buffer, Buffer, Buffer],
    values: Callable[[TirExpr], Operand],
    names: Names,
) -> Stmt:
    """The tiles of a block of queries and a block of keys, which are in strips."""
    queries, strips, scores = buffers
    _, scores_row = scores.shape
    tile = parts(block.count, _tile_rows(p), "io", names)
    first = block.start + tile.start
    last = first + tile.count - 1
    begin = within(p.seen.at(p.at(first)), keys).first
    skipped = begin // STRIP if begin else ZERO
    count = within(p.seen.at(p.at(last)), keys).end or keys.count
    remaining = binary("max", ZERO, count - skipped * STRIP) if begin else count
    strip = parts(remaining, STRIP, "so", names)
    start = skipped * STRIP + strip.start
    product = multiply(
        (queries[0, 0], p.size, 1),
        (strips[skipped + strip.place, 0, 0], STRIP, 1),
        (scores[0, start], scores_row, 1),
        (tile.count, strip.count, number(p.size)),
        adds=ZERO,
    )
    rows = _each(p, fixed, first, tile.count, names)
    powers = Tile(p, keys, scores, tile.count, count, tile.start, rows)
    total = multiply(
        (scores[0, skipped * STRIP], scores_row, 1),
        values(skipped * STRIP),
        (state.values[tile.start, 0], p.width, 1),
        (tile.count, number(p.width), remaining),
        adds=goes_on(state, keys),
    )
    copy = rows(lambda row: copied_query(p, queries, row, names))
    work = seq(copy, strip.around(product), absorb(state, powers, names), total)
    work = where_seen(p, first, last, keys, work)
    return tile.around(work)


def _transposed(p: Attention, strips: Buffer, keys: Parts, fixed: Values, names: Names) -> Stmt:
    """Copy a block of keys to strips, each key to a column."""
    strip = parts(keys.count, STRIP, "so", names)
    start = {**fixed, p.key.var: keys.start + strip.start}
    moves = steps(p.keys.buffer, p.keys.indices, (p.key.var, p.depth.var))
    if moves and moves[1] == 1:
        key = bound_load(p.keys, {**start, p.depth.var: ZERO})
        places = tuple((load.buffer, load.indices) for load in (key, strips[strip.place, 0, 0]))
        size = (strip.count, number(p.size))
        scalars = (from_dim(moves[0]), number(STRIP), *size)
        return strip.around(TensorIntrinsic(name_of(32), places, scalars))
    d, j = names.var("d"), names.var("j")
    point = {**start, p.key.var: keys.start + strip.start + j, p.depth.var: d}
    copy = Store(strips, (strip.place, d, j), bound_load(p.keys, point))
    inner = For(j, strip.count, "vectorized", copy)
    return strip.around(For(d, number(p.size), "serial", inner))


@dataclass(frozen=True, slots=True)
class _Values:
    """The values of a block as an operand, by the number of its first row.

    `copy` copies the values if they are not contiguous; `room` are the buffers for it.
    """

    place: Callable[[TirExpr], Operand]
    copy: tuple[Stmt, ...] = ()
    room: tuple[Buffer, ...] = ()


def _values(p: Attention, keys: Parts, fixed: Values, names: Names) -> _Values:
    """A block of values, read in place if each value is contiguous."""
    moves = steps(p.values.buffer, p.values.indices, (p.key.var, p.column.var))
    if moves and moves[1] == 1:
        step = moves[0]

        def place(first: TirExpr) -> Operand:
            at = {**fixed, p.key.var: keys.start + first, p.column.var: ZERO}
            return bound_load(p.values, at), step, 1

        return _Values(place)
    block, j, e = room("block", names, _most_keys(), p.width), names.var("j"), names.var("e")
    point = {**fixed, p.key.var: keys.start + j, p.column.var: e}
    row = For(e, number(p.width), "vectorized", Store(block, (j, e), bound_load(p.values, point)))
    copy = For(j, keys.count, "serial", row)
    return _Values(lambda first: (block[first, 0], p.width, 1), (copy,), (block,))
