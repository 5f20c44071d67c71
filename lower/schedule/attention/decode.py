"""Attention of a few queries: keys and values are read once, in place and in order.

The keys are cut into blocks, each a task that stores its sums in memory; then the sums are joined.
The blocks depend on the number of keys alone, so results do not depend on the number of threads.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.intrinsics.axpy import NAME as AXPY_TILE
from relax_egraph.lower.intrinsics.dots import NAME as DOT_TILE
from relax_egraph.lower.schedule.attention.heads import Heads, heads_of
from relax_egraph.lower.schedule.attention.mask import ALL
from relax_egraph.lower.schedule.attention.match import Attention
from relax_egraph.lower.schedule.attention.parts import (
    Parts,
    Values,
    multiply,
    number,
    parts,
    where_seen,
)
from relax_egraph.lower.schedule.attention.rows import Tile, absorb, copied_query
from relax_egraph.lower.schedule.attention.state import (
    LOW,
    NONE,
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
from relax_egraph.lower.schedule.stages import Axis
from relax_egraph.tir.expr import (
    Binary,
    Buffer,
    BufferLoad,
    Imm,
    Intrinsic,
    Select,
    TirExpr,
    TirVar,
    from_dim,
)
from relax_egraph.tir.stmt import For, Stmt, Store, TensorIntrinsic, TirBlock, seq

BLOCK_KEYS = 256
"""The keys of a task, whose scores fit the first-level cache."""

LN_2 = math.log(2)


def streams(p: Attention) -> bool:
    """Whether the layout of keys and values allows reading them sequentially."""

    def moves(load: BufferLoad, run: Attention, axis: Axis) -> Sequence[Dim]:
        return steps(load.buffer, load.indices, (run.key.var, axis.var)) or (0, 0)

    return all(
        1 in moves(run.keys, run, p.depth) and moves(run.values, run, p.column)[1] == 1
        for run in p.runs
    )


def by_keys(p: Attention, most: int, names: Names) -> Stmt:
    """The blocks of keys of some heads, for at most `most` queries, and the join of their sums."""
    each = heads_of(p)
    heads = each[0]
    axes = [replace(a, extent=heads.tasks) if a is heads.axis else a for a in p.batch]
    of_runs = (
        dims.floordiv(dims.add(run.key.extent, BLOCK_KEYS - 1), BLOCK_KEYS) for run in p.runs
    )
    *starts, blocks = accumulate(of_runs, dims.add, initial=0)
    rows = heads.most * most
    shape = (*(a.extent for a in axes), blocks, rows)
    top, total = (Buffer(names.fresh(name), shape, "float32") for name in ("tops", "totals"))
    sums = Buffer(names.fresh("sums"), (*shape, p.width), "float32")
    partial_state = State(top, total, sums, is_clear=p.seen != ALL)
    work = seq(
        *map(partial(_blocks, axes, partial_state, names), p.runs, each, starts),
        _joined(p, heads, axes, partial_state, blocks, names),
    )
    return TirBlock("blocks", (), work, allocs=partial_state.buffers)


def _rows(p: Attention, heads: Heads) -> TirExpr:
    """The number of rows of a task: a query of a head each."""
    return from_dim(dims.mul(heads.most, p.rows))


def _each(p: Attention, heads: Heads, fixed: Values, names: Names) -> EachRow:
    """Loops over all rows of a task; rows of one head of the keys are adjacent."""
    rows = from_dim(p.rows)

    def each(body: Callable[[Row], Stmt]) -> Stmt:
        head = parts(number(heads.together), 1, "h", names)
        member = parts(number(heads.sharing), 1, "g", names)
        query = parts(rows, 1, "i", names)
        point = {**heads.at(head.place, fixed), **p.at(query.place)}
        if heads.axis:
            point[heads.axis.var] = point[heads.axis.var] * heads.sharing + member.place
        row = (head.place * heads.sharing + member.place) * rows + query.place
        return head.around(member.around(query.around(body(Row(row, point)))))

    return each


def _blocks(
    axes: Sequence[Axis], partial_state: State, names: Names, p: Attention, heads: Heads, start: Dim
) -> Stmt:
    """The sums of each block of keys, stored from block `start` on."""
    batch, fixed = names.renamed(axes, "b")
    block = parts(from_dim(p.key.extent), BLOCK_KEYS, "ko", names)
    keys = Parts(None, number(1), block.start, block.count)
    state = replace(partial_state, at=(*(a.var for a in batch), from_dim(start) + block.place))
    most = partial_state.most_rows
    queries, scores = room("queries", names, most, p.size), room("scores", names, most, BLOCK_KEYS)
    each = _each(p, heads, fixed, names)
    tile = Tile(p, keys, scores, _rows(p, heads), keys.count, ZERO, each)
    work = seq(
        each(lambda row: copied_query(p, queries, row, names)),
        _products(p, heads, tile, queries, fixed, names),
        absorb(state, tile, names),
        _sums(p, heads, tile, state, fixed, names),
    )
    work = where_seen(p, ZERO, from_dim(dims.sub(p.rows, 1)), keys, work)
    body = seq(begin(p, state, tile.rows, names), work)
    body = TirBlock("keys", (), body, allocs=(queries, scores))
    return parallel(batch, block.around(body, "parallel"))


def _products(
    p: Attention, heads: Heads, tile: Tile, queries: Buffer, fixed: Values, names: Names
) -> Stmt:
    """The products of a block of keys with all rows."""
    rows = from_dim(dims.mul(heads.sharing, p.rows))
    step, along = _step(heads.keys, p.key), _step(heads.keys, p.depth)
    at_once = along == 1  # otherwise keys are columns
    head, beside = _heads_of_call(heads, heads.keys, names, at_once=at_once)
    at = {**heads.at(head.place, fixed), p.key.var: tile.keys.start, p.depth.var: ZERO}
    key, row = bound_load(heads.keys, at), head.place * rows
    if not at_once:
        product = multiply(
            (queries[row, 0], p.size, 1),
            (key, along, 1),
            (tile.buffer[row, 0], BLOCK_KEYS, 1),
            (rows, tile.count, number(p.size)),
            adds=ZERO,
        )
        return head.around(product)
    places = (queries[row, 0], key, tile.buffer[row, 0])
    strides = map(from_dim, (p.size, step, beside, BLOCK_KEYS))
    product = TensorIntrinsic(
        DOT_TILE,
        tuple((x.buffer, x.indices) for x in places),
        (*strides, head.count, rows, tile.count, number(p.size)),
    )
    return head.around(product)


def _sums(
    p: Attention, heads: Heads, tile: Tile, state: State, fixed: Values, names: Names
) -> Stmt:
    """The values of a block times the powers of the rows."""
    rows = from_dim(dims.mul(heads.sharing, p.rows))
    head, beside = _heads_of_call(heads, heads.values, names, at_once=True)
    at = {**heads.at(head.place, fixed), p.key.var: tile.keys.start, p.column.var: ZERO}
    row = head.place * rows
    places = (
        tile.buffer[row, 0],
        bound_load(heads.values, at),
        state.values[(*state.place(row), 0)],
    )
    strides = map(from_dim, (BLOCK_KEYS, _step(heads.values, p.key), beside, p.width))
    size = (head.count, rows, number(p.width), tile.count)
    total = TensorIntrinsic(
        AXPY_TILE,
        tuple((x.buffer, x.indices) for x in places),
        (*strides, *size, goes_on(state, tile.keys)),
    )
    return head.around(total)


def _heads_of_call(
    heads: Heads, load: BufferLoad, names: Names, *, at_once: bool
) -> tuple[Parts, Dim]:
    """The heads of a task in parts, one for each call, and their distance in memory.

    They are one part if they can be read `at_once`, at equal distances.
    """
    count = number(heads.together)
    moves = steps(load.buffer, load.indices, (heads.axis.var,)) if heads.axis else None
    if not at_once or moves is None or heads.together == 1:
        return parts(count, 1, "h", names), 0
    return Parts(None, number(1), ZERO, count), moves[0]


def _step(load: BufferLoad, axis: Axis) -> Dim:
    """The distance of neighbours along `axis` in memory."""
    moves = steps(load.buffer, load.indices, (axis.var,))
    assert moves is not None, "keys that are streamed are linear"
    return moves[0]


def _joined(
    p: Attention,
    heads: Heads,
    axes: Sequence[Axis],
    partial_state: State,
    blocks: Dim,
    names: Names,
) -> Stmt:
    """The results, joined from the sums of all blocks."""
    batch, fixed = names.renamed(axes, "b")
    state = state_of(partial_state.most_rows, p.width, names, is_clear=True)
    weight, rows = room("weight", names, partial_state.most_rows), _rows(p, heads)

    def of_blocks(body: Callable[[State, TirVar], Stmt]) -> Stmt:
        block, r = names.var("k"), names.var("r")
        part = replace(partial_state, at=(*(a.var for a in batch), block))
        return For(block, from_dim(blocks), "serial", body(part, r))

    def highest(part: State, r: TirVar) -> Stmt:
        top = Binary("max", state.top[r], part.top[part.place(r)])
        return For(r, rows, "vectorized", Store(state.top, (r,), top))

    def added(part: State, r: TirVar) -> Stmt:
        less = Binary("-", part.top[part.place(r)], state.top[r])
        power = Intrinsic("exp", (Binary("*", less, Imm(LN_2, "float32")),))
        total = Binary("*", part.total[part.place(r)], weight[r])
        weights = seq(
            Store(weight, (r,), power),
            Store(state.total, (r,), Binary("+", state.total[r], total)),
        )
        i, e = names.var("i"), names.var("e")
        value = Binary("*", part.values[(*part.place(i), e)], weight[i])
        value = Binary("+", state.values[i, e], value)
        values = For(e, state.width, "vectorized", Store(state.values, (i, e), value))
        return seq(For(r, rows, "vectorized", weights), For(i, rows, "serial", values))

    r = names.var("r")
    level = Select(Binary("==", state.top[r], LOW), NONE, state.top[r])
    body = seq(
        begin(p, state, rows, names),
        of_blocks(highest),
        For(r, rows, "vectorized", Store(state.top, (r,), level)),
        of_blocks(added),
        end(p, state, rows, _each(p, heads, fixed, names), names),
    )
    return parallel(batch, TirBlock("joined", (), body, allocs=(weight, *state.buffers)))
