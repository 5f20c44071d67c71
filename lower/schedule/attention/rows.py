"""The softmax of scores, tile by tile, with running maxima and sums.

The scores of a tile, as base-2 logarithms, are replaced by powers; if the maximum of a row grows,
its earlier sums are scaled down.
"""

from dataclasses import dataclass

from relax_egraph.lower.intrinsics.softmax import NAME
from relax_egraph.lower.schedule.attention.mask import ALL, Run
from relax_egraph.lower.schedule.attention.match import LOG2_E, Attention
from relax_egraph.lower.schedule.attention.parts import Parts, number, within
from relax_egraph.lower.schedule.attention.state import EachRow, Row, State, goes_on, room
from relax_egraph.lower.schedule.loops import ZERO
from relax_egraph.lower.schedule.names import Names
from relax_egraph.tir.expr import Binary, Buffer, Imm, TirExpr, from_dim
from relax_egraph.tir.rewrite import rewrite, substitute
from relax_egraph.tir.stmt import For, IfThenElse, Stmt, Store, TensorIntrinsic, TirBlock, seq


@dataclass(frozen=True, slots=True)
class Tile:
    """Products in `buffer`, for `rows` rows and `count` keys of a block.

    `each` creates loops over the rows; `first` is the number of the first row in the state.
    """

    attention: Attention
    keys: Parts
    buffer: Buffer
    rows: TirExpr
    count: TirExpr
    first: TirExpr
    each: EachRow

    @property
    def most_rows(self) -> int:
        """The maximal number of rows."""
        rows = self.buffer.shape[0]
        assert isinstance(rows, int)
        return rows

    def seen(self, row: Row) -> Run:
        """The keys of the tile that a row sees."""
        return within(self.attention.seen.at(row.point), self.keys)

    def score(self, row: Row, key: TirExpr) -> TirExpr:
        """The score of a key of the tile."""
        product, load = self.attention.product, self.buffer[row.number, key]

        def change(e: TirExpr) -> TirExpr:
            return load if e == product else e

        point = {**row.point, self.attention.key.var: self.keys.start + key}
        return substitute(rewrite(self.attention.score, change), point)


def copied_query(p: Attention, queries: Buffer, row: Row, names: Names) -> Stmt:
    """Copy the query of a row to `queries`, where products read it."""
    d = names.var("d")
    copy = Store(queries, (row.number, d), p.query(d, row.point))
    return For(d, number(p.size), "vectorized", copy)


def absorb(state: State, tile: Tile, names: Names) -> Stmt:
    """Replace the products of a tile by powers, and update the state of its rows."""
    most = tile.most_rows
    begin, end = (Buffer(names.fresh(n), (most,), "int64", "local") for n in ("begin", "end"))
    shrink = room("shrink", names, most)
    rows = (tile.buffer[0, 0], begin[0], end[0])
    place = state.place(tile.first)
    states = (state.top[place], state.total[place], shrink[0])
    places = tuple((load.buffer, load.indices) for load in (*rows, *states))
    width = tile.buffer.shape[1]
    body = seq(
        *_scores(tile, names),
        _runs(tile, begin, end, names),
        TensorIntrinsic(NAME, places, (from_dim(width), tile.rows, tile.count)),
        *_rescale(state, tile, shrink, names),
    )
    return TirBlock("softmax", (), body, allocs=(begin, end, shrink))


def _scores(tile: Tile, names: Names) -> list[Stmt]:
    """Replace the products by scores, unless these differ only by a factor."""
    if tile.attention.factor is not None:
        return []

    def scores(row: Row) -> Stmt:
        j, seen = names.var("j"), tile.seen(row)
        first, last = seen.first or ZERO, seen.end or tile.count
        score = Binary("*", tile.score(row, first + j), Imm(LOG2_E, "float32"))
        update = Store(tile.buffer, (row.number, first + j), score)
        return For(j, last - first, "vectorized", update)

    return [tile.each(scores)]


def _runs(tile: Tile, begin: Buffer, end: Buffer, names: Names) -> Stmt:
    """Store the begin and end of the keys that each row sees."""

    def run(row: Row) -> Stmt:
        seen, at = tile.seen(row), (row.number,)
        return seq(Store(begin, at, seen.first or ZERO), Store(end, at, seen.end or tile.count))

    if tile.attention.seen != ALL:
        return tile.each(run)
    r = names.var("r")
    return For(r, tile.rows, "vectorized", run(Row(r, {})))


def _rescale(state: State, tile: Tile, shrink: Buffer, names: Names) -> list[Stmt]:
    """Scale the sums of values to the new maximum, if there are some."""
    r, e, has_sums = names.var("r"), names.var("e"), goes_on(state, tile.keys)
    place = (*state.place(tile.first + r), e)
    value = Binary("*", state.values[place], shrink[r])
    loop: Stmt = For(e, state.width, "vectorized", Store(state.values, place, value))
    loop = For(r, tile.rows, "serial", loop)
    if isinstance(has_sums, Imm):
        return [loop] if has_sums.value else []
    return [IfThenElse(has_sums > 0, loop)]
