"""Fills a line: each of its columns with all that the windows see of it across."""

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
"""How many elements one expression combines."""

_Taps = Sequence[TirExpr]


def filled(line: Line, made: Buffer) -> Stmt:
    """`made`, whose first column is the first that windows see; around data nothing is combined."""
    w, columns = line.pool.along, line.columns
    length = binary("+", binary("-", columns.count, 1) * w.stride, w.reach)

    def from_first(first: TirExpr) -> Stmt:
        if not w.is_padded:
            return _Across(line, made, ZERO, first, length).fill()
        before = binary("max", binary("min", binary("-", 0, first), length), 0)
        end = binary("min", binary("-", from_dim(w.extent), first), length)
        return line.named(before, lambda before: inside(first, before, end))

    def inside(first: TirExpr, before: TirExpr, end: TirExpr) -> Stmt:
        count = binary("max", binary("-", end, before), 0)
        return line.named(count, lambda count: in_parts(first, before, count))

    def in_parts(first: TirExpr, before: TirExpr, count: TirExpr) -> Stmt:
        behind = binary("+", before, count)
        return seq(
            _cleared(line, made, ZERO, before),
            _Across(line, made, before, binary("+", first, before), count).fill(),
            _cleared(line, made, behind, binary("-", length, behind)),
        )

    return line.named(binary("-", columns.start * w.stride, w.before), from_first)


def _cleared(line: Line, made: Buffer, start: TirExpr, count: TirExpr) -> Stmt:
    init = line.pool.reduction.init
    return line.over(count, lambda at: store(made[_moved(at, start)], init))


@dataclass(frozen=True, slots=True)
class _Across:
    """What fills `count` columns of `made` from `start` on; the first is at `begin` in data."""

    line: Line
    made: Buffer
    start: TirExpr
    begin: TirExpr
    count: TirExpr

    def fill(self) -> Stmt:
        """The statements, which test a row as a whole for whether all that is seen is in data."""
        if prod(w.size for w in self.windows) > MOST_TAPS:
            return self._in_turn()
        pairs = zip(self.windows, self._begins(), strict=True)
        tests = [t for w, begin in pairs for t in _tests(w, begin, w.reach)]
        if not tests:
            return self._at_once(self._seen)
        return IfThenElse(_all(tests), self._at_once(self._seen), self._at_once(self._guarded))

    @property
    def windows(self) -> tuple[Window, ...]:
        """Those across."""
        return self.line.pool.across

    def _begins(self) -> list[TirExpr]:
        return [self.line.rows[w.position.var] * w.stride - w.before for w in self.windows]

    def _at_once(self, element: Callable[[_Taps, Place], TirExpr]) -> Stmt:
        every = [[*map(as_expr, taps)] for taps in product(*(range(w.size) for w in self.windows))]

        def combine(at: Place) -> Stmt:
            place = self.made[_moved(at, self.start)]
            return store(place, self.line.combined(element(taps, at) for taps in every))

        return self.line.over(self.count, combine)

    def _in_turn(self) -> Stmt:
        """One tap after the other, of those in data."""
        ranges = [_inside(w, at) for w, at in zip(self.windows, self._begins(), strict=True)]
        turns = [self.line.names.var("k") for _ in self.windows]
        taps = [binary("+", first, k) for (first, _), k in zip(ranges, turns, strict=True)]

        def add(at: Place) -> Stmt:
            place = self.made[_moved(at, self.start)]
            return store(place, self.line.combined([place, self._seen(taps, at)]))

        counts = [(k, count) for k, (_, count) in zip(turns, ranges, strict=True)]
        clear = _cleared(self.line, self.made, self.start, self.count)
        return seq(clear, serial(counts, self.line.over(self.count, add)))

    def _seen(self, taps: _Taps, at: Place) -> TirExpr:
        windows = zip(self.windows, self._begins(), taps, strict=True)
        places = {w.place: begin + tap * w.dilation for w, begin, tap in windows}
        places[self.line.pool.along.place] = binary("+", self.begin, at[0])
        values = {**self.line.rows, **self.line.inside(at), **places}
        return substitute(self.line.pool.value, values)

    def _guarded(self, taps: _Taps, at: Place) -> TirExpr:
        windows = zip(self.windows, self._begins(), taps, strict=True)
        tests = [t for w, begin, tap in windows for t in _tests(w, begin + tap * w.dilation, 1)]
        return Select(_all(tests), self._seen(taps, at), self.line.pool.reduction.init, lazy=True)


def _moved(at: Place, start: TirExpr) -> tuple[TirExpr, ...]:
    return (binary("+", start, at[0]), *at[1:])


def _tests(w: Window, begin: TirExpr, count: int) -> list[TirExpr]:
    """Whether so many places from `begin` on are in data."""
    if not w.is_padded:
        return []
    end = from_dim(w.extent)
    return [Binary(">=", begin, ZERO), Binary("<=", begin + count, end)]


def _all(tests: Sequence[TirExpr]) -> TirExpr:
    return reduce(lambda a, b: Binary("and", a, b), tests)


def _inside(w: Window, begin: TirExpr) -> tuple[TirExpr, TirExpr]:
    """The first tap in data of the window that begins at `begin`, and how many are in it."""
    if not w.is_padded:
        return ZERO, as_expr(w.size)
    first = binary("max", _steps(0 - begin, w.dilation), 0)
    end = binary("min", _steps(from_dim(w.extent) - begin, w.dilation), w.size)
    return first, binary("max", end - first, 0)


def _steps(way: TirExpr, step: int) -> TirExpr:
    """In how many steps a way is gone."""
    return binary("//", way + (step - 1), step)
