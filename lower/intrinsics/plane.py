"""Convolution of planes: each weight times a vector of adjacent positions, ``plane_tile``.

All lanes are positions, however few features there are.  The sums stay in registers over all taps
of all channels.
"""

from collections.abc import Sequence

from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.module_text import F32, I64, PTR, Module, Type
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.intrinsics.blocks import Block, strips
from relax_egraph.lower.intrinsics.left import added
from relax_egraph.lower.intrinsics.strips import in_blocks

NAME = "plane_tile"

PARAMS: tuple[Type, ...] = (PTR, PTR, PTR, *(I64,) * 10)
"""``a, b, c, a_row, b_plane, b_line, b_tap, c_row, rows, columns, planes, lines, taps``."""


def define_plane_tile(module: Module, target: Target) -> None:
    """Add ``plane_tile(a, b, c, a_row, b_plane, …, rows, columns, planes, lines, taps)``.

    ``c[i·c_row + j] = Σ a[i·a_row + n] · b[p·b_plane + l·b_line + t·b_tap + j]`` of float32, with
    ``n = (p·lines + l)·taps + t``, for ``i < rows``, ``j < columns``, over ``p < planes``,
    ``l < lines``, ``t < taps``.  `c` overlaps neither `a` nor `b`; no other elements are read or
    written.
    """
    f = Function(module, NAME, PARAMS)
    a, b, c, *strides, rows, columns, planes, lines, taps = f.args
    done, lanes = f.index(0), target.lanes(32)
    for vectors, blocks in strips(target):
        name, width = f"plane_{vectors}", vectors * lanes
        _define_strip(module, name, blocks)
        end = columns if vectors == 1 else columns - f.binary("urem", columns - done, width)
        with f.loop(done, end, width) as across:
            j = across.index
            places = (a, f.address(b, j, F32), f.address(c, j, F32))
            count = f.minimum(columns - j, width)
            f.call(name, *places, *strides, rows, count, planes, lines, taps)
        done = end
    f.finish()


def _define_strip(module: Module, name: str, blocks: Sequence[Block]) -> None:
    """Define a strip: a function over all its rows, in balanced blocks."""
    for block in blocks:
        _define_block(module, block)
    f = Function(module, name, PARAMS, internal=True)
    a, b, c, a_row, *steps, c_row, rows, columns, planes, lines, taps = f.args
    for height, own, (a_at, c_at) in in_blocks(f, rows, len(blocks), (a, a_row), (c, c_row)):
        name, sizes = f"plane_{blocks[height - 1].size}", (own, columns, planes, lines, taps)
        f.call(name, a_at, b, c_at, a_row, *steps, c_row, *sizes)
    f.finish()


def _define_block(module: Module, block: Block) -> None:
    """Define the micro-kernel of `block`, with the parameters `PARAMS`."""
    f = Function(module, f"plane_{block.size}", PARAMS, internal=True)
    a, b, c, a_row, b_plane, b_line, b_tap, c_row, _, columns, planes, lines, taps = f.args
    row = block.row(f, columns)
    a_rows = [a_row * i if i else f.const(I64, 0) for i in range(block.rows)]
    zeros = [f.const(F32.of(block.lanes), 0)] * (block.rows * block.vectors)

    with f.loop(0, planes, 1, (a, b, *zeros)) as over_planes:
        weight, plane, *carried = over_planes.values
        with f.loop(0, lines, 1, (weight, plane, *carried)) as over_lines:
            weight, line, *carried = over_lines.values
            with f.loop(0, taps, 1, (weight, line, *carried)) as steps:
                a_at, b_at, *sums = steps.values
                terms = row.read(b_at)
                places = (f.address(a_at, offset, F32) for offset in a_rows)
                sums = added(places, terms, sums, block.lanes)
                steps.carry(f.address(a_at, 1, F32), f.address(b_at, b_tap, F32), *sums)
            weight, _, *carried = steps.results
            over_lines.carry(weight, f.address(line, b_line, F32), *carried)
        weight, _, *carried = over_lines.results
        over_planes.carry(weight, f.address(plane, b_plane, F32), *carried)
    _, _, *totals = over_planes.results
    row.write_all([f.address(c, c_row * i if i else 0, F32) for i in range(block.rows)], totals)
    f.finish()
