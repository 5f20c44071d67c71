"""Attention of a few queries: keys and values are read once, where they lie, in their order."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from relax_egraph.ir import dims
from relax_egraph.lower.schedule.attention.heads import Heads, heads_of
from relax_egraph.lower.schedule.attention.match import Attention
from relax_egraph.lower.schedule.attention.parts import (
    Values,
    number,
    parts,
    where_seen,
)
from relax_egraph.lower.schedule.attention.rows import Tile, absorb
from relax_egraph.lower.schedule.attention.state import (
    NONE,
    Row,
    State,
    begin,
    end,
    room,
    state_of,
)
from relax_egraph.lower.schedule.index import steps
from relax_egraph.lower.schedule.loops import ZERO, parallel
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.product import bound_load
from relax_egraph.tir.expr import Binary, TirExpr, binary, from_dim
from relax_egraph.tir.stmt import For, Stmt, Store, TirBlock, seq

TOGETHER = 4
"""Values that are added at once, so that the sums are less often read and written."""

BLOCK_KEYS = 256
"""Keys between two looks at the maximum: their scores stay in the first cache."""


def streams(p: Attention) -> bool:
    """Whether keys and values lie so that they can be read in their order."""
    along = [(p.keys, p.depth), (p.values, p.column)]
    moves = [steps(x.buffer, x.indices, (p.key.var, axis.var)) for x, axis in along]
    return all(m is not None and m[1] == 1 for m in moves)


def by_keys(p: Attention, most: int, names: Names) -> Stmt:
    """Some heads at a time, over all blocks of keys, of at most `most` queries."""
    heads = heads_of(p)
    axes = [replace(a, extent=heads.tasks) if a is heads.axis else a for a in p.batch]
    batch, fixed = names.renamed(axes, "b")
    keys = parts(from_dim(p.key.extent), BLOCK_KEYS, "ko", names)
    rows = from_dim(dims.mul(heads.most, p.rows))
    state = state_of(heads.most * most, p.width, names, is_clear=True)
    scores = room("scores", names, heads.most * most, BLOCK_KEYS)
    each = partial(_each, p, heads, fixed, names)
    tile = Tile(p, keys, scores, rows, keys.count, ZERO, each)
    work = seq(
        _products(p, heads, tile, fixed, names),
        absorb(state, tile, names),
        _sums(p, heads, tile, state, fixed, names),
    )
    last = from_dim(dims.sub(p.rows, 1))
    work = where_seen(p, ZERO, last, keys, work)
    body = seq(begin(p, state, rows, names), keys.around(work), end(p, state, rows, each, names))
    return parallel(batch, TirBlock("queries", (), body, allocs=(scores, *state.buffers)))


def _each(
    p: Attention, heads: Heads, fixed: Values, names: Names, body: Callable[[Row], Stmt]
) -> Stmt:
    """Loops over all rows of a task."""
    head = parts(number(heads.together), 1, "h", names)
    return head.around(_of_head(p, heads, head.place, fixed, names, body))


def _of_head(
    p: Attention,
    heads: Heads,
    head: TirExpr,
    fixed: Values,
    names: Names,
    body: Callable[[Row], Stmt],
) -> Stmt:
    """Loops over the rows of a task that share a head of keys."""
    member = parts(number(heads.sharing), 1, "g", names)
    query = parts(from_dim(p.rows), 1, "i", names)
    point = {**heads.at(head, fixed), **p.at(query.place)}
    if heads.axis:
        point[heads.axis.var] = point[heads.axis.var] * heads.sharing + member.place
    row = (head * heads.sharing + member.place) * from_dim(p.rows) + query.place
    return member.around(query.around(body(Row(row, point))))


def _products(p: Attention, heads: Heads, tile: Tile, fixed: Values, names: Names) -> Stmt:
    """The products of a block of keys with all rows, key by key."""
    head, j = parts(number(heads.together), 1, "h", names), names.var("j")
    key = bound_load(heads.keys, {**heads.at(head.place, fixed), p.key.var: tile.keys.start + j})

    def product(row: Row) -> Stmt:
        d, dot = names.var("d"), room("dot", names, 1)
        query = bound_load(p.queries, {**row.point, p.depth.var: d})
        term = Binary("*", query, bound_load(key, {p.depth.var: d}))
        body = seq(
            Store(dot, (ZERO,), NONE),
            For(d, number(p.size), "vectorized", Store(dot, (ZERO,), Binary("+", dot[0], term))),
            Store(tile.buffer, (row.number, j), dot[0]),
        )
        return TirBlock("product", (), body, allocs=(dot,))

    rows = _of_head(p, heads, head.place, fixed, names, product)
    return For(j, tile.count, "serial", head.around(rows))


def _sums(
    p: Attention, heads: Heads, tile: Tile, state: State, fixed: Values, names: Names
) -> Stmt:
    """The values of a block times the powers of the rows, some keys at a time."""
    rounds = binary("//", tile.count, TOGETHER)

    def add(keys: Sequence[TirExpr]) -> Stmt:
        head, e = parts(number(heads.together), 1, "h", names), names.var("e")
        here = {**heads.at(head.place, fixed), p.column.var: e}

        def sums(row: Row) -> Stmt:
            value: TirExpr = state.values[row.number, e]
            for key in keys:
                place = bound_load(heads.values, {**here, p.key.var: tile.keys.start + key})
                value = Binary("+", value, Binary("*", tile.buffer[row.number, key], place))
            return For(e, state.width, "vectorized", Store(state.values, (row.number, e), value))

        return head.around(_of_head(p, heads, head.place, fixed, names, sums))

    j, k = names.var("j"), names.var("j")
    first = j * TOGETHER
    rest = For(k, tile.count - rounds * TOGETHER, "serial", add([rounds * TOGETHER + k]))
    return seq(For(j, rounds, "serial", add([first + n for n in range(TOGETHER)])), rest)
