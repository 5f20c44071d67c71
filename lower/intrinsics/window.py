"""Convolution of windows with weights: ``window_tile``.

A window is cut into contiguous runs: `taps` of them for each of its `lines`.  The input is read in
place, and the sums stay in registers over all runs, however short.
"""

from collections.abc import Sequence

from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.module_text import F32, I64, PTR, Module, Type
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.intrinsics.blocks import Block, strips
from relax_egraph.lower.intrinsics.left import added
from relax_egraph.lower.intrinsics.row import strip_columns
from relax_egraph.lower.intrinsics.strips import in_blocks

NAME = "window_tile"

PARAMS: tuple[Type, ...] = (PTR, PTR, PTR, *(I64,) * 12)
"""``a, b, c``, then ``a_row, a_line, a_tap, b_step, b_strip, c_row``, the distances, then ``rows,
columns, lines, taps, depth, adds``."""

_OF_STRIP = PARAMS[:-1]
"""The parameters without ``b_strip``: those of columns that are read together."""


def define_window_tile(module: Module, target: Target) -> None:
    """Add ``window_tile(a, b, c, a_row, a_line, …, rows, columns, lines, taps, depth, adds)``.

    ``c[i·c_row + j] = Σ a[i·a_row + l·a_line + t·a_tap + k] · b[n·b_step + s·b_strip + j - s·S]``
    of float32, with ``n = (l·taps + t)·depth + k``, for ``i < rows``, ``j < columns``, over
    ``l < lines``, ``t < taps``, ``k < depth``; ``S`` is `strip_columns`, and ``s = j // S``.  The
    sum is added to `c` if `adds`, which is 0 or 1, is 1.  `c` overlaps neither `a` nor `b`; no
    other elements are read or written.
    """
    f = Function(module, NAME, PARAMS)
    a, b, c, a_row, a_line, a_tap, b_step, b_strip, c_row, rows, columns, *sizes = f.args
    strides = (a_row, a_line, a_tap, b_step, c_row)
    done, size = f.index(0), strip_columns("float32")
    for vectors, blocks in strips(target):
        name, width = f"window_{vectors}", vectors * target.lanes(32)
        _define_strip(module, name, blocks)
        rest = columns - done
        end = columns if vectors == 1 else columns - f.binary("urem", rest, width)
        if width > size:  # a strip of a narrower processor is read by single vectors
            end = f.select(f.compare("==", b_strip, size), end, done)
        with f.loop(done, end, width) as across:
            j = across.index
            right = f.binary("udiv", j, size) * b_strip + f.binary("urem", j, size)
            places = (a, f.address(b, right, F32), f.address(c, j, F32))
            count = f.minimum(columns - j, width)
            f.call(name, *places, *strides, rows, count, *sizes)
        done = end
    f.finish()


def _define_strip(module: Module, name: str, blocks: Sequence[Block]) -> None:
    """Define a strip: a function over all its rows, in balanced blocks."""
    for block in blocks:
        _define_block(module, block)
    f = Function(module, name, _OF_STRIP, internal=True)
    a, b, c, a_row, a_line, a_tap, b_step, c_row, rows, *others = f.args
    strides = (a_row, a_line, a_tap, b_step, c_row)
    for height, own, (a_at, c_at) in in_blocks(f, rows, len(blocks), (a, a_row), (c, c_row)):
        f.call(f"window_{blocks[height - 1].size}", a_at, b, c_at, *strides, own, *others)
    f.finish()


def _define_block(module: Module, block: Block) -> None:
    """Define the micro-kernel of `block`, with the parameters `_OF_STRIP`."""
    f = Function(module, f"window_{block.size}", _OF_STRIP, internal=True)
    a, b, c, a_row, a_line, a_tap, b_step, c_row, _, columns, lines, taps, depth, adds = f.args
    row = block.row(f, columns)
    a_rows = [a_row * i if i else f.const(I64, 0) for i in range(block.rows)]
    c_rows = [f.address(c, c_row * i if i else 0, F32) for i in range(block.rows)]

    with f.loop(0, lines, 1, (a, b, *row.sums_at(c_rows, adds))) as over_lines:
        line, b_line, *carried = over_lines.values
        with f.loop(0, taps, 1, (line, b_line, *carried)) as over_taps:
            tap, b_tap, *carried = over_taps.values
            with f.loop(0, depth, 1, (tap, b_tap, *carried)) as steps:
                a_at, b_at, *sums = steps.values
                terms = row.read(b_at)
                places = (f.address(a_at, offset, F32) for offset in a_rows)
                sums = added(places, terms, sums, block.lanes)
                steps.carry(f.address(a_at, 1, F32), f.address(b_at, b_step, F32), *sums)
            _, b_next, *carried = steps.results
            over_taps.carry(f.address(tap, a_tap, F32), b_next, *carried)
        _, b_next, *carried = over_taps.results
        over_lines.carry(f.address(line, a_line, F32), b_next, *carried)
    _, _, *totals = over_lines.results
    row.write_all(c_rows, totals)
    f.finish()
