"""Filling of a line: each column with the reduction of the windows across it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod

from relax_egraph.lower.schedule.conv.parts import serial, store
from relax_egraph.lower.schedule.loops import ZERO
from relax_egraph.lower.schedule.pool.line import Line, Place
from relax_egraph.lower.schedule.pool.windows import Window
from relax_egraph.tir.expr import Binary, Buffer, Select, TirExpr, as_expr, binary, from_dim
from relax_egraph.tir.rewrite import substitute
from relax_egraph.tir.stmt import IfThenElse, Stmt, seq

MOST_TAPS = 16
"""The maximal elements in one expression."""

_Taps = Sequence[TirExpr]


def fill_line(line: Line, target: Buffer) -> Stmt:
    """Fill `target`, whose first column is the first that windows read; padding is neutral.

    What only the last vector reads is neutral, too: left as it is, it may be subnormal, and then a
    processor computes with it for many times as long.
    """
    w, count = line.pool.along, line.columns.count
    length, all_read = line.under(count), line.under(line.all_whole(count))

    def from_first(first: TirExpr) -> Stmt:
        if not w.is_padded:
            filled = _Across(line, target, ZERO, first, length).fill()
            return seq(filled, cleared_from(length)) if line.is_apart else filled
        before = binary("max", binary("min", binary("-", 0, first), length), 0)
        end = binary("min", binary("-", from_dim(w.extent), first), length)
        return line.named(before, lambda before: inside(first, before, end))

    def inside(first: TirExpr, before: TirExpr, end: TirExpr) -> Stmt:
        count = binary("max", binary("-", end, before), 0)
        return line.named(count, lambda count: in_parts(first, before, count))

    def in_parts(first: TirExpr, before: TirExpr, count: TirExpr) -> Stmt:
        behind = binary("+", before, count)
        return seq(
            _cleared(line, target, ZERO, before),
            _Across(line, target, before, binary("+", first, before), count).fill(),
            cleared_from(behind),
        )

    def cleared_from(start: TirExpr) -> Stmt:
        return _cleared(line, target, start, binary("-", all_read, start))

    return line.named(binary("-", line.columns.start * w.stride, w.before), from_first)


def _cleared(line: Line, target: Buffer, start: TirExpr, count: TirExpr) -> Stmt:
    if count == ZERO:
        return seq()
    init = line.pool.reduction.init
    return line.over(count, lambda at: store(target[_moved(at, start)], init))


@dataclass(frozen=True, slots=True)
class _Across:
    """Fills `count` columns of `target` from `start` on; the first is at `begin` in data."""

    line: Line
    target: Buffer
    start: TirExpr
    begin: TirExpr
    count: TirExpr

    def fill(self) -> Stmt:
        """The statements, which test once for a row whether all its windows are inside data."""
        if prod(w.size for w in self.windows) > MOST_TAPS:
            return self._in_turn()
        pairs = zip(self.windows, self._begins(), strict=True)
        tests = [t for w, begin in pairs for t in _tests(w, begin, w.reach)]
        if not tests:
            return self._at_once(self._element)
        return IfThenElse(_all(tests), self._at_once(self._element), self._at_once(self._guarded))

    @property
    def windows(self) -> tuple[Window, ...]:
        """The windows across the line."""
        return self.line.pool.across

    def _begins(self) -> list[TirExpr]:
        return [self.line.rows[w.position.var] * w.stride - w.before for w in self.windows]

    def _at_once(self, element: Callable[[_Taps, Place], TirExpr]) -> Stmt:
        every = [[*map(as_expr, taps)] for taps in product(*(range(w.size) for w in self.windows))]

        def combine(at: Place) -> Stmt:
            place = self.target[_moved(at, self.start)]
            return store(place, self.line.combined(element(taps, at) for taps in every))

        return self.line.over(self.count, combine)

    def _in_turn(self) -> Stmt:
        """One tap after the other, of those inside data."""
        ranges = [_inside(w, at) for w, at in zip(self.windows, self._begins(), strict=True)]
        turns = [self.line.names.var("k") for _ in self.windows]
        taps = [binary("+", first, k) for (first, _), k in zip(ranges, turns, strict=True)]

        def add(at: Place) -> Stmt:
            place = self.target[_moved(at, self.start)]
            return store(place, self.line.combined([place, self._element(taps, at)]))

        counts = [(k, count) for k, (_, count) in zip(turns, ranges, strict=True)]
        clear = _cleared(self.line, self.target, self.start, self.count)
        return seq(clear, serial(counts, self.line.over(self.count, add)))

    def _element(self, taps: _Taps, at: Place) -> TirExpr:
        windows = zip(self.windows, self._begins(), taps, strict=True)
        places = {w.place: begin + tap * w.dilation for w, begin, tap in windows}
        places[self.line.pool.along.place] = binary("+", self.begin, at[0])
        values = {**self.line.rows, **self.line.inside(at), **places}
        return substitute(self.line.pool.value, values)

    def _guarded(self, taps: _Taps, at: Place) -> TirExpr:
        windows = zip(self.windows, self._begins(), taps, strict=True)
        tests = [t for w, begin, tap in windows for t in _tests(w, begin + tap * w.dilation, 1)]
        return Select(
            _all(tests), self._element(taps, at), self.line.pool.reduction.init, lazy=True
        )


def _moved(at: Place, start: TirExpr) -> tuple[TirExpr, ...]:
    return (binary("+", start, at[0]), *at[1:])


def _tests(w: Window, begin: TirExpr, count: int) -> list[TirExpr]:
    """The conditions that `count` places from `begin` on are in data."""
    if not w.is_padded:
        return []
    end = from_dim(w.extent)
    return [Binary(">=", begin, ZERO), Binary("<=", begin + count, end)]


def _all(tests: Sequence[TirExpr]) -> TirExpr:
    return reduce(lambda a, b: Binary("and", a, b), tests)


def _inside(w: Window, begin: TirExpr) -> tuple[TirExpr, TirExpr]:
    """The first tap inside data of the window from `begin` on, and the number of such taps."""
    if not w.is_padded:
        return ZERO, as_expr(w.size)
    first = binary("max", _steps(0 - begin, w.dilation), 0)
    end = binary("min", _steps(from_dim(w.extent) - begin, w.dilation), w.size)
    return first, binary("max", end - first, 0)


def _steps(distance: TirExpr, step: int) -> TirExpr:
    """The number of steps that cover a distance."""
    return binary("//", distance + (step - 1), step)
