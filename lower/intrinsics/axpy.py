"""The product of a few rows of factors with many rows, as weighted sums: ``axpy_tile``.

It reads the many rows in order, as a stream; ``gemm_tile`` reads strips of columns.
"""

from dataclasses import dataclass

from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.module_text import F32, I64, PTR, Module, Type
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.emit.vector import first_lanes, masked_store
from relax_egraph.lower.intrinsics.left import added
from relax_egraph.lower.intrinsics.row import Row

NAME = "axpy_tile"

PARAMS: tuple[Type, ...] = (PTR, PTR, PTR, I64, I64, I64, I64, I64, I64, I64, I64, I64)
"""``a, b, c, a_row, b_row, b_head, c_row, heads, rows, columns, depth, adds``."""

_AT_ONCE = 32
"""Rows of `b` of a head that are processed before the next head, if there are several heads: with
more, memory is read less sequentially."""

_UNROLLED = 16
"""Unrolled products of a row of factors with rows of `b`, divided by the height of a block."""

_MOST_PRODUCTS = 64
"""The most unrolled products of vectors."""

_COLUMNS = 64
"""The columns of sums in registers, if there are as many: a row of `b` is then read at once."""

_PAIR = 2
"""The vectors of columns that are left, at once."""

_HEIGHTS = (4, 1)
"""The rows of sums in registers: the more there are, the less often `b` is read."""


def define_axpy_tile(module: Module, target: Target) -> None:
    """Add ``axpy_tile(a, b, c, a_row, b_row, b_head, c_row, heads, rows, columns, depth, adds)``.

    With ``r = h·rows + i``, of float32::

        c[r·c_row + j] = Σₖ a[r·a_row + k] · b[k·b_row + h·b_head + j]

    for ``h < heads``, ``i < rows``, ``j < columns``, ``k < depth``; the sum is added to `c` if
    `adds`, which is 0 or 1, is 1.  `c` overlaps neither `a` nor `b`.

    The heads take turns, some rows of `b` at a time: if heads are adjacent in memory, it is read
    almost sequentially.
    """
    f = Function(module, NAME, PARAMS)
    a, b, c, a_row, b_row, b_head, c_row, heads, rows, columns, depth, adds = f.args
    type = F32.of(target.lanes(32))
    with f.loop(0, (1 - adds) * heads * rows) as down, f.loop(0, columns, type.lanes) as along:
        place = f.address(c, down.index * c_row + along.index, F32)
        masked_store(f.const(type, 0), place, first_lanes(f, columns - along.index, type.lanes))

    step = f.select(f.compare("==", heads, 1), depth, _AT_ONCE)
    with f.loop(0, depth, step) as deep, f.loop(0, heads) as head:
        steps = f.minimum(depth - deep.index, step)
        right = f.address(b, deep.index * b_row + head.index * b_head, F32)
        start = f.index(0)
        for height in _HEIGHTS:
            stop = rows - f.binary("urem", rows, height)
            with f.loop(start, stop, height) as down:
                row = head.index * rows + down.index
                left = f.address(a, row * a_row + deep.index, F32)
                result = f.address(c, row * c_row, F32)
                block = _Block(left, right, result, a_row, b_row, c_row, height)
                vectors = min(target.vector_registers // (2 * height), _COLUMNS // type.lanes)
                _across(block, columns, steps, type, vectors)
            start = stop
    f.finish()


@dataclass(frozen=True, slots=True)
class _Block:
    """`height` rows of factors and sums, and rows of `b`, at their first column."""

    left: Value
    right: Value
    result: Value
    a_row: Value
    b_row: Value
    c_row: Value
    height: int


def _across(block: _Block, columns: Value, steps: Value, type: Type, vectors: int) -> None:
    """Add `steps` rows to all columns of a block."""
    f, start = columns.function, columns.function.index(0)
    for count in sorted({vectors, _PAIR}, reverse=True):
        width = count * type.lanes
        stop = columns - f.binary("urem", columns - start, width)
        with f.loop(start, stop, width) as along:
            _add(block, along.index, steps, type, count, None)
        start = stop
    with f.loop(start, columns, type.lanes) as along:
        mask = first_lanes(f, columns - along.index, type.lanes)
        _add(block, along.index, steps, type, 1, mask)


def _add(
    block: _Block, column: Value, steps: Value, type: Type, vectors: int, mask: Value | None
) -> None:
    """The same for some vectors of columns, under `mask` if there is one."""
    f = column.function

    row = Row(vectors, type.lanes, mask)
    factors = [f.address(block.left, block.a_row * i, F32) for i in range(block.height)]
    rows = [f.address(block.result, block.c_row * i + column, F32) for i in range(block.height)]
    right = f.address(block.right, column, F32)
    sums = [total for place in rows for total in row.read(place)]
    start = f.index(0)
    for count in (min(_UNROLLED, _MOST_PRODUCTS // vectors) // block.height, 1):
        stop = steps - f.binary("urem", steps, count)
        with f.loop(start, stop, count, [right, *sums]) as main:
            right, *sums = main.values
            for k in range(count):
                terms = row.read(right)
                numbers = (f.address(p, main.index + k, F32) for p in factors)
                sums = added(numbers, terms, sums, type.lanes)
                right = f.address(right, block.b_row, F32)
            main.carry(right, *sums)
        start, (right, *sums) = stop, main.results
    row.write_all(rows, sums)
