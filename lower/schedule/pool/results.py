"""The stores of a line: the reduction along it, and the epilogue."""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_egraph.lower.schedule.conv.parts import along, serial, store
from relax_egraph.lower.schedule.epilogue import stores_at
from relax_egraph.lower.schedule.pool.across import MOST_TAPS
from relax_egraph.lower.schedule.pool.line import Line, Place
from relax_egraph.lower.schedule.stages import Stage
from relax_egraph.tir.expr import Buffer, BufferLoad, TirExpr, as_expr, binary
from relax_egraph.tir.stmt import Stmt, TirBlock, seq


@dataclass(frozen=True, slots=True)
class Results:
    """The stages `rest`, which follow the pool; if it `is_output`, the pool is stored, too."""

    line: Line
    rest: Sequence[Stage]
    is_output: bool

    def of(self, source: Buffer) -> Stmt:
        """The stores of all columns, from the line in `source`."""
        line, count = self.line, self.line.columns.count
        size = line.pool.along.size
        if size <= MOST_TAPS and not line.is_apart:
            return line.over(count, lambda at: self._stored(self._at_once(source, at), at))
        row = line.buffer("row", line.whole(line.columns.size))
        if size <= MOST_TAPS:
            whole = line.all_whole(count)
            fill = line.over(whole, lambda at: store(row[tuple(at)], self._at_once(source, at)))
        elif line.is_apart:
            fill = self._one_by_one(source, row)
        else:
            fill = self._in_turn(source, row)
        stores = line.over(count, lambda at: self._stored(row[tuple(at)], at))
        return TirBlock("row", (), seq(fill, stores), allocs=(row,))

    def _element(self, source: Buffer, at: Place, tap: TirExpr) -> BufferLoad:
        w = self.line.pool.along
        return source[(at[0] * w.stride + tap * w.dilation, *at[1:])]

    def _at_once(self, source: Buffer, at: Place) -> TirExpr:
        taps = map(as_expr, range(self.line.pool.along.size))
        return self.line.combined(self._element(source, at, tap) for tap in taps)

    def _in_turn(self, source: Buffer, row: Buffer) -> Stmt:
        """One tap after the other, for all columns."""
        line, tap = self.line, self.line.names.var("k")
        init, count = line.pool.reduction.init, line.columns.count

        def add(at: Place) -> Stmt:
            place = row[tuple(at)]
            return store(place, line.combined([place, self._element(source, at, tap)]))

        clear = line.over(count, lambda at: store(row[tuple(at)], init))
        taps = as_expr(line.pool.along.size)
        return seq(clear, serial([(tap, taps)], line.over(count, add)))

    def _one_by_one(self, source: Buffer, row: Buffer) -> Stmt:
        """One column after the other, whose taps are vectorized."""
        line, tap, column = self.line, self.line.names.var("k"), self.line.names.var("x")
        total = line.buffer("total", 1)
        clear = store(total[0], line.pool.reduction.init)
        add = store(total[0], line.combined([total[0], self._element(source, (column,), tap)]))
        taps = along(tap, as_expr(line.pool.along.size), add)
        body = seq(clear, taps, store(row[column], total[0]))
        window = TirBlock("window", (), body, allocs=(total,))
        return serial([(column, line.columns.count)], window)

    def _stored(self, element: TirExpr, at: Place) -> Stmt:
        line = self.line
        position = binary("+", line.columns.start, at[0])
        point = {**line.rows, **line.inside(at), line.pool.along.position.var: position}
        return stores_at(point, line.pool.stage, element, self.rest, is_output=self.is_output)
