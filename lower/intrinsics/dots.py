"""The product of a few rows with many rows, each contiguous along the depth: ``dot_tile``.

It reads the many rows in order, as a stream; ``gemm_tile`` would need them transposed.
"""

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.module_text import F32, I64, PTR, Module, Type
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.emit.vector import first_lanes, masked_load, reduce
from relax_egraph.lower.intrinsics.across import across

NAME = "dot_tile"

PARAMS: tuple[Type, ...] = (PTR, PTR, PTR, I64, I64, I64, I64, I64, I64, I64, I64)
"""``a, b, c, a_row, b_row, b_head, c_row, heads, rows, columns, depth``."""

LINE = 16
"""The elements of a cache line."""

_TOGETHER = 4
"""Consecutive vectors read of one row, so that distant rows are read by whole lines."""


def define_dot_tile(module: Module, target: Target) -> None:
    """Add ``dot_tile(a, b, c, a_row, b_row, b_head, c_row, heads, rows, columns, depth)``.

    With ``r = h·rows + i``, of float32::

        c[r·c_row + j] = Σₖ a[r·a_row + k] · b[j·b_row + h·b_head + k]

    for ``h < heads``, ``i < rows``, ``j < columns``, ``k < depth``.  `c` overlaps neither `a` nor
    `b`.

    A block is as many rows of `b` as a vector has lanes; the heads take turns, so if heads are
    adjacent in memory, it is read almost sequentially.  The first row of `a` waits for memory;
    later rows of the same head prefetch the next block.
    """
    f = Function(module, NAME, PARAMS)
    a, b, c, a_row, b_row, b_head, c_row, heads, rows, columns, depth = f.args
    type = F32.of(target.lanes(32))
    whole = columns - f.binary("urem", columns, type.lanes)

    def rows_of(j: Value, count: int) -> None:
        with f.loop(0, heads) as head:
            right = _Rows(f.address(b, j * b_row + head.index * b_head, F32), b_row, count)
            is_last = f.compare("==", head.index + 1, heads)
            onward = f.select(is_last, b_row * count - head.index * b_head, b_head)
            with f.loop(0, rows) as down:
                row = head.index * rows + down.index
                with f.when(f.compare(">", rows, 1)):
                    for place in right.at(onward + down.index * LINE):
                        f.prefetch(place)
                sums = _sums(f.address(a, row * a_row, F32), right, depth, type)
                total = across(sums, operator.add) if count > 1 else reduce("+", sums[0])
                f.store(total, f.address(c, row * c_row + j, F32))

    with f.loop(0, whole, type.lanes) as along:
        rows_of(along.index, type.lanes)
    with f.loop(whole, columns) as along:
        rows_of(along.index, 1)
    f.finish()


@dataclass(frozen=True, slots=True)
class _Rows:
    """`count` rows at a distance of `step` elements; the first begins at `start`."""

    start: Value
    step: Value
    count: int

    def at(self, offset: Value) -> Iterator[Value]:
        """The addresses of the elements at `offset` of the rows, each computed from the last."""
        f = self.start.function
        place = f.address(self.start, offset, F32)
        for k in range(self.count):
            yield place
            if k + 1 < self.count:
                place = f.address(place, self.step, F32)


def _sums(left: Value, right: _Rows, depth: Value, type: Type) -> Sequence[Value]:
    """The products of the row at `left` with each row of `right`, summed by lanes."""
    f, lanes = left.function, type.lanes
    sums: Sequence[Value] = [f.const(type, 0)] * right.count
    start = f.index(0)
    for vectors in (_TOGETHER, 1):
        stop = depth - f.binary("urem", depth, vectors * lanes)
        with f.loop(start, stop, vectors * lanes, sums) as main:
            factors = _vectors(f.address(left, main.index, F32), vectors, type)
            totals = list[Value]()
            for place, total in zip(right.at(main.index), main.values, strict=True):
                for x, y in zip(factors, _vectors(place, vectors, type), strict=True):
                    total = f.fma(x, y, total)
                totals.append(total)
            main.carry(*totals)
        start, sums = stop, main.results
    with f.loop(start, depth, lanes, sums) as rest:
        mask = first_lanes(f, depth - rest.index, lanes)
        x = masked_load(f.address(left, rest.index, F32), type, mask)
        terms = [masked_load(p, type, mask) for p in right.at(rest.index)]
        rest.carry(*(f.fma(x, y, total) for y, total in zip(terms, rest.values, strict=True)))
    return rest.results


def _vectors(place: Value, count: int, type: Type) -> list[Value]:
    """`count` adjacent vectors."""
    f = place.function
    return [f.load(f.address(place, k * type.lanes, F32), type) for k in range(count)]
