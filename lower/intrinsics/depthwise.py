"""Depthwise convolution: window sums of each channel with its own weights, ``depthwise_tile``.

Several positions of a line are summed at once, so each weight is read once for all of them.
"""

from collections.abc import Sequence

from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.module_text import F32, I64, PTR, Module, Type
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.emit.vector import first_lanes
from relax_egraph.lower.intrinsics.row import Row
from relax_egraph.lower.intrinsics.strips import in_blocks

NAME = "depthwise_tile"

PARAMS: tuple[Type, ...] = (PTR, PTR, PTR, *(I64,) * 11)
"""``a, b, c, a_row, a_line, a_tap, b_line, b_tap, c_row, rows, columns, lines, taps, adds``."""


def define_depthwise_tile(module: Module, target: Target) -> None:
    """Add ``depthwise_tile(a, b, c, a_row, a_line, …, rows, columns, lines, taps, adds)``.

    ``c[i·c_row + j] = Σ a[i·a_row + l·a_line + t·a_tap + j] · b[l·b_line + t·b_tap + j]`` of
    float32 for ``i < rows``, ``j < columns``, over ``l < lines``, ``t < taps``; the sum is added to
    `c` if `adds`, which is 0 or 1, is 1.  `c` overlaps neither `a` nor `b`; no other elements are
    read or written.
    """
    f = Function(module, NAME, PARAMS)
    a, b, c, *strides, rows, columns, lines, taps, adds = f.args
    done, lanes = f.index(0), target.lanes(32)
    for tall, vectors in _strips(target):
        name, width = f"depthwise_{vectors}", vectors * lanes
        _define_strip(module, name, tall, vectors, lanes)
        end = columns if vectors == 1 else columns - f.binary("urem", columns - done, width)
        with f.loop(done, end, width) as across:
            j = across.index
            places = (f.address(a, j, F32), f.address(b, j, F32), f.address(c, j, F32))
            count = f.minimum(columns - j, width)
            f.call(name, *places, *strides, rows, count, lines, taps, adds)
        done = end
    f.finish()


def _strips(target: Target) -> Sequence[tuple[int, int]]:
    """The maximal rows of a block and its vectors, from the widest strips to the narrowest."""
    if target.vector_registers == 32:
        return (6 if target.multiplies_memory else 5, 4), (10, 2), (12, 1)
    return (6, 2), (10, 1)


def _define_strip(module: Module, name: str, tall: int, vectors: int, lanes: int) -> None:
    """Define a strip: a function over all its rows, in balanced blocks."""
    for rows in range(1, tall + 1):
        _define_block(module, rows, vectors, lanes)
    f = Function(module, name, PARAMS, internal=True)
    a, b, c, *strides, rows, columns, lines, taps, adds = f.args
    a_row, *_, c_row = strides
    for height, _, (a_at, c_at) in in_blocks(f, rows, tall, (a, a_row), (c, c_row)):
        f.call(_name(height, vectors), a_at, b, c_at, *strides, columns, lines, taps, adds)
    f.finish()


def _name(rows: int, vectors: int) -> str:
    return f"depthwise_{rows}x{vectors}"


def _define_block(module: Module, rows: int, vectors: int, lanes: int) -> None:
    """Define the micro-kernel of `rows` by `vectors` vectors; a single one may be partly used."""
    params = (PTR, PTR, PTR, *(I64,) * 10)
    f = Function(module, _name(rows, vectors), params, internal=True)
    a, b, c, a_row, a_line, a_tap, b_line, b_tap, c_row, columns, lines, taps, adds = f.args
    row = Row(vectors, lanes, first_lanes(f, columns, lanes) if vectors == 1 else None)
    a_rows = [a_row * i if i else f.const(I64, 0) for i in range(rows)]
    c_rows = [f.address(c, c_row * i if i else 0, F32) for i in range(rows)]

    with f.loop(0, lines, 1, (a, b, *row.sums_at(c_rows, adds))) as over_lines:
        line, b_at, *sums = over_lines.values
        with f.loop(0, taps, 1, (line, b_at, *sums)) as over_taps:
            tap, weights, *sums = over_taps.values
            factors = row.read(weights)
            inputs = (v for offset in a_rows for v in row.read(f.address(tap, offset, F32)))
            pairs = zip(inputs, factors * rows, sums, strict=True)
            totals = [f.fma(x, w, total) for x, w, total in pairs]
            over_taps.carry(f.address(tap, a_tap, F32), f.address(weights, b_tap, F32), *totals)
        _, _, *sums = over_taps.results
        over_lines.carry(f.address(line, a_line, F32), f.address(b_at, b_line, F32), *sums)
    _, _, *totals = over_lines.results
    row.write_all(c_rows, totals)
    f.finish()
