"""The softmax of scores that come tile by tile, with running maxima and sums.

The scores of a tile become powers ``exp(score - maximum)`` in place; where the maximum grows, what
was added up before shrinks (Milakov and Gimelshein, 2018).
"""

from collections.abc import Callable
from dataclasses import dataclass

from relax_egraph.lower.schedule.attention.mask import Run
from relax_egraph.lower.schedule.attention.match import Attention
from relax_egraph.lower.schedule.attention.parts import Parts, within
from relax_egraph.lower.schedule.attention.state import (
    LOW,
    NONE,
    EachRow,
    Row,
    State,
    goes_on,
    room,
)
from relax_egraph.lower.schedule.loops import ZERO
from relax_egraph.lower.schedule.names import Names
from relax_egraph.tir.expr import (
    Binary,
    Buffer,
    BufferLoad,
    Imm,
    Intrinsic,
    Select,
    TirExpr,
)
from relax_egraph.tir.rewrite import loads, rewrite, substitute
from relax_egraph.tir.stmt import For, IfThenElse, Stmt, Store, TirBlock, seq


@dataclass(frozen=True, slots=True)
class Tile:
    """Products in `buffer`, of `rows` rows, and `count` keys of a block.

    `each` makes loops over the rows; `first` is the number of the first of them in the state.
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
        """How many rows there is room for."""
        rows = self.buffer.shape[0]
        assert isinstance(rows, int)
        return rows

    def seen(self, row: Row) -> Run:
        """The keys of the tile that a row sees."""
        return within(self.attention.seen.at(row.point), self.keys)

    def score(self, row: Row, key: TirExpr) -> TirExpr:
        """The score of a key of the tile."""
        product, held = self.attention.product, self.buffer[row.number, key]

        def change(e: TirExpr) -> TirExpr:
            return held if e == product else e

        point = {**row.point, self.attention.key.var: self.keys.start + key}
        return substitute(rewrite(self.attention.score, change), point)

    @property
    def is_costly(self) -> bool:
        """Whether a score is computed of more than the product, so that it is better stored."""
        score = self.attention.score
        return isinstance(score, Select) or len(loads(score)) > 1


def absorb(state: State, tile: Tile, names: Names) -> Stmt:
    """Make powers of the products of a tile, and bring the state of its rows up to date.

    Each step is done for all rows before the next: within a row each has to wait for the last.
    """
    level, shrink = (room(name, names, tile.most_rows) for name in ("level", "shrink"))
    r = names.var("r")
    body = seq(
        tile.each(lambda row: _highest(state, tile, row, level, names)),
        For(r, tile.rows, "vectorized", _levels(state, tile.first + r, level[r], shrink)),
        tile.each(lambda row: _powers(state, tile, row, level[row.number], shrink, names)),
    )
    return TirBlock("softmax", (), body, allocs=(level, shrink))


def _highest(state: State, tile: Tile, row: Row, level: Buffer, names: Names) -> Stmt:
    """The highest score of a row so far."""
    r = row.number

    def highest(j: TirExpr) -> Stmt:
        score, held = tile.score(row, j), tile.buffer[r, j]
        if not tile.is_costly:
            return Store(level, (r,), Binary("max", level[r], score))
        kept = Store(tile.buffer, held.indices, score)
        return seq(kept, Store(level, (r,), Binary("max", level[r], held)))

    return seq(Store(level, (r,), state.top[tile.first + r]), _along(tile, row, highest, names))


def _levels(state: State, row: TirExpr, level: BufferLoad, shrink: Buffer) -> Stmt:
    """What is subtracted from scores, and what earlier sums are multiplied with.

    Of a row whose scores are all -∞ so far 0 is subtracted, as -∞ - -∞ is not a number.
    """
    own = Select(Binary("==", level, LOW), NONE, level)
    return seq(
        Store(shrink, level.indices, Intrinsic("exp", (Binary("-", state.top[row], own),))),
        Store(state.top, (row,), level),
        Store(level.buffer, level.indices, own),
    )


def _powers(
    state: State, tile: Tile, row: Row, level: BufferLoad, shrink: Buffer, names: Names
) -> Stmt:
    """The powers of a row in place of its products, 0 of the keys it does not see, and the sums."""
    r, place, part = row.number, tile.first + row.number, room("part", names, 1)

    def power(j: TirExpr) -> Stmt:
        held = tile.buffer[r, j]
        score = held if tile.is_costly else tile.score(row, j)
        raised = Intrinsic("exp", (Binary("-", score, level),))
        add = Store(part, (ZERO,), Binary("+", part[0], held))
        return seq(Store(tile.buffer, held.indices, raised), add)

    total = Binary("+", Binary("*", state.total[place], shrink[r]), part[0])
    body = seq(
        Store(part, (ZERO,), NONE),
        _along(tile, row, power, names),
        *_hidden(tile, row, names),
        Store(state.total, (place,), total),
        *_shrunk(state, tile, place, shrink[r], names),
    )
    return TirBlock("row", (), body, allocs=(part,))


def _along(tile: Tile, row: Row, body: Callable[[TirExpr], Stmt], names: Names) -> Stmt:
    """`body` for the keys that a row sees."""
    seen, j = tile.seen(row), names.var("j")
    first, last = seen.first or ZERO, seen.end or tile.count
    return For(j, last - first, "vectorized", body(first + j))


def _hidden(tile: Tile, row: Row, names: Names) -> list[Stmt]:
    """Powers of 0 for the keys that a row does not see."""
    seen, zeros = tile.seen(row), list[Stmt]()
    if seen.first is not None:
        j = names.var("j")
        zeros.append(For(j, seen.first, "vectorized", Store(tile.buffer, (row.number, j), NONE)))
    if seen.end is not None:
        j = names.var("j")
        zero = Store(tile.buffer, (row.number, seen.end + j), NONE)
        zeros.append(For(j, tile.count - seen.end, "vectorized", zero))
    return zeros


def _shrunk(
    state: State, tile: Tile, place: TirExpr, shrink: BufferLoad, names: Names
) -> list[Stmt]:
    """The sums of values, brought to the new maximum, if there are some."""
    e, there = names.var("e"), goes_on(state, tile.keys)
    value = Binary("*", state.values[place, e], shrink)
    loop: Stmt = For(e, state.width, "vectorized", Store(state.values, (place, e), value))
    if isinstance(there, Imm):
        return [loop] if there.value else []
    return [IfThenElse(there > 0, loop)]
