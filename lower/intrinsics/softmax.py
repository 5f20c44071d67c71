"""The softmax of a tile of scores, with running maxima and sums: ``softmax_tile``.

Scores are base-2 logarithms.  They are replaced by powers of 2, relative to the maximum of their
row in this tile and those before (Milakov and Gimelshein, 2018).  As many rows as a vector has
lanes are processed together, so a number for each row is a lane; reducing row by row would wait at
each step for the last.
"""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.float_scale import power_of_two
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.module_text import F32, I64, PTR, Module, Type
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.emit.vector import first_lanes, masked_load, masked_store
from relax_egraph.lower.intrinsics.across import Combine, across

NAME = "softmax_tile"

PARAMS: tuple[Type, ...] = (PTR, PTR, PTR, PTR, PTR, PTR, I64, I64, I64)
"""``x, first, end, top, total, shrink, x_row, rows, columns``."""

_SETS = 4
"""Vectors of a row that run at once, each with its own maximum or sum."""

_LOW = float("-inf")

_Step = Callable[[Value, Value | None, Value], Value]
"""Maps an address, the mask of its valid lanes (``None``: all), and a value so far to the next."""


def define_softmax_tile(module: Module, target: Target) -> None:
    """Add ``softmax_tile(x, first, end, top, total, shrink, x_row, rows, columns)``.

    For row ``i < rows``, with the scores ``x[i·x_row + j]`` for ``first[i] ≤ j < end[i]``,
    ``top[i]`` is the maximum so far; the other elements up to `columns` become 0::

        old, top[i] = top[i], max(top[i], max_j x[i, j])
        shrink[i] = 2^(old - top[i])
        x[i, j] = 2^(x[i, j] - top[i])
        total[i] = total[i]·shrink[i] + Σ_j x[i, j]

    A `top` of -∞ counts as 0 in subtractions.  A NaN score makes `total` NaN.
    """
    f = Function(module, NAME, PARAMS)
    x, first, end, top, total, shrink, x_row, rows, columns = f.args
    lanes = target.lanes(32)
    tile = _Tile(f, F32.of(lanes), f.allocate(F32, lanes * lanes), f.allocate(F32, lanes))
    with f.loop(0, rows, lanes) as down:
        count = f.minimum(rows - down.index, lanes)
        mask = first_lanes(f, count, lanes)

        def run(i: Value) -> tuple[Value, Value, Value]:
            row = down.index + i
            begin, stop = (f.load(f.address(p, row, I64), I64) for p in (first, end))
            return f.address(x, row * x_row, F32), begin, stop

        def of_rows(array: Value) -> Value:
            return f.address(array, down.index, F32)

        old = masked_load(of_rows(top), tile.type, mask)
        new = _larger(old, tile.of_each(count, lambda i: tile.highest(*run(i)), _larger))
        level = f.select(f.compare("==", new, _LOW), 0.0, new)
        f.store(level, tile.levels)
        scale = power_of_two(old - level)
        masked_store(new, of_rows(top), mask)
        masked_store(scale, of_rows(shrink), mask)

        def powers(i: Value) -> Value:
            row, begin, stop = run(i)
            tile.clear(row, f.index(0), begin)
            tile.clear(row, stop, columns)
            return tile.powers(row, begin, stop, f.load(f.address(tile.levels, i, F32), F32))

        added = tile.of_each(count, powers, operator.add)
        sums = masked_load(of_rows(total), tile.type, mask)
        masked_store(f.fma(sums, scale, added), of_rows(total), mask)
    f.finish()


@dataclass(frozen=True, slots=True)
class _Tile:
    """Steps on as many rows as `type` has lanes, in the function `f`.

    `parts` is memory for a vector of each row, `levels` for one vector of all rows.
    """

    f: Function
    type: Type
    parts: Value
    levels: Value

    def of_each(self, count: Value, part: Callable[[Value], Value], combine: Combine) -> Value:
        """In lane ``i`` the reduction of ``part(i)`` by `combine`, for the first `count` rows."""
        f, lanes = self.f, self.type.lanes
        with f.loop(0, count) as down:
            f.store(part(down.index), f.address(self.parts, down.index * lanes, F32))
        places = [f.address(self.parts, i * lanes, F32) for i in range(lanes)]
        return across([f.load(place, self.type) for place in places], combine)

    def highest(self, row: Value, begin: Value, stop: Value) -> Value:
        """The maxima of the scores from `begin` to `stop`, by lanes: at least -∞, ignoring NaN."""

        def step(place: Value, mask: Value | None, sofar: Value) -> Value:
            return _larger(self._read(place, mask), sofar)

        return self._along(row, begin, stop, _LOW, step, _larger, _SETS)

    def powers(self, row: Value, begin: Value, stop: Value, level: Value) -> Value:
        """Replace the scores from `begin` to `stop` by powers; returns their sums, by lanes."""

        def step(place: Value, mask: Value | None, sofar: Value) -> Value:
            power = power_of_two(self._read(place, mask) - level)
            if mask is None:
                self.f.store(power, place)
            else:
                masked_store(power, place, mask)
            return sofar + power

        has_many = self.f.module.target.vector_registers == 32
        sets = _SETS if has_many else 1  # 16 registers hold the constants, and one vector
        return self._along(row, begin, stop, 0.0, step, operator.add, sets)

    def clear(self, row: Value, begin: Value, stop: Value) -> None:
        """Set the elements from `begin` to `stop` to 0."""
        f, lanes = self.f, self.type.lanes
        with f.loop(begin, stop, lanes) as along:
            mask = first_lanes(f, stop - along.index, lanes)
            masked_store(f.const(self.type, 0), f.address(row, along.index, F32), mask)

    def _read(self, place: Value, mask: Value | None) -> Value:
        if mask is None:
            return self.f.load(place, self.type)
        return masked_load(place, self.type, mask, _LOW)

    def _along(
        self,
        row: Value,
        begin: Value,
        stop: Value,
        start: float,
        step: _Step,
        combine: Combine,
        sets: int,
    ) -> Value:
        """The result of `step`, applied along the vectors of a row from `start` on.

        It runs on `sets` vectors at once, each of which has a result of its own at first.
        """
        f, lanes = self.f, self.type.lanes
        starts, width = [f.const(self.type, start)] * sets, sets * lanes
        count = f.maximum(stop - begin, 0)
        whole = begin + count - f.binary("urem", count, width)
        with f.loop(begin, whole, width, starts) as main:
            places = [f.address(row, main.index + k * lanes, F32) for k in range(sets)]
            main.carry(*(step(p, None, v) for p, v in zip(places, main.values, strict=True)))
        with f.loop(whole, stop, lanes, [_in_halves(main.results, combine)]) as rest:
            mask = first_lanes(f, stop - rest.index, lanes)
            rest.carry(step(f.address(row, rest.index, F32), mask, *rest.values))
        return rest.results[0]


def _in_halves(values: Sequence[Value], combine: Combine) -> Value:
    """All `values`, a power of two, combined: neighbours first."""
    while len(values) > 1:
        values = [combine(a, b) for a, b in zip(values[::2], values[1::2], strict=True)]
    return values[0]


def _larger(a: Value, b: Value) -> Value:
    """The larger of two; `b` if one is NaN."""
    f = a.function
    return f.select(f.compare(">", a, b), a, b)
