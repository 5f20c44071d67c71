"""Matrix products of a tile: ``gemm_tile``, and ``gemm_tile_float64`` and so on.

There is one routine for each dtype of the right operand, with the sizes as run-time parameters.
Columns are cut into strips as wide as the micro-kernels, and the remainder into single vectors; a
single row is computed by whole cache lines of the right operand, if these are wider.
The rows of a strip are cut into blocks of almost equal heights, which keeps the multipliers busier
than full blocks and a small remainder.
"""

from collections.abc import Callable, Mapping

from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.instructions import Operand, Value
from relax_egraph.lower.emit.module_text import I64, PTR, IntrinsicEmitter, Module, Type
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.intrinsics.gemm_block import (
    Block,
    define_block,
    fits,
    halves,
    line,
    narrow,
    wide,
)
from relax_egraph.lower.intrinsics.row import ELEMENTS, computed, strip_columns
from relax_egraph.lower.intrinsics.strips import balanced

NAME = "gemm_tile"

PARAMS: tuple[Type, ...] = (PTR, PTR, PTR, *(I64,) * 10)
"""``a, b, c, a_row, a_step, b_step, b_strip, c_row, rows, columns, depth, adds, ahead``."""


def name_of(dtype: str) -> str:
    """The name of the routine for a right operand of `dtype`."""
    return NAME if dtype == "float32" else f"{NAME}_{dtype}"


def define_gemm_tile(module: Module, target: Target, dtype: str = "float32") -> None:
    """Add ``gemm_tile(a, b, c, a_row, a_step, b_step, b_strip, c_row, rows, columns, …)``.

    ``c[i·c_row + j] = Σₖ a[i·a_row + k·a_step] · b[k·b_step + s·b_strip + j - s·S]`` for
    ``i < rows``, ``j < columns``, ``k < depth``, of `dtype`, or of float32 with a narrow `b` of
    `dtype`; ``S`` is `strip_columns`, the columns of a cache line, and ``s = j // S``.  The sum is
    added to `c` if `adds`, which is 0 or 1, is 1.  `c` overlaps neither `a` nor `b`; no other
    elements are read or written.  The last parameters are `depth`, `adds` and `ahead`.

    If `ahead` is not 0, the lines at that distance from those of `b` are prefetched meanwhile.
    """
    blocks, rest, row = wide(target, dtype), narrow(target, dtype), line(target, dtype)
    half = halves(target, dtype)
    has_lines = row.vectors > blocks[0].vectors and fits(target, row)
    for block in (*blocks, *half, *rest, *((row,) if has_lines else ())):
        define_block(module, block)
    _define_wide_strip(module, blocks, half)
    _define_narrow_strip(module, rest)
    f = Function(module, name_of(dtype), PARAMS)
    a, b, c, a_row, a_step, b_step, b_strip, c_row, rows, columns, depth, adds, ahead = f.args
    size, number = strip_columns(dtype), computed(dtype)
    width, lanes = blocks[0].vectors * blocks[0].lanes, blocks[0].lanes
    whole = columns - f.binary("urem", columns, width)
    if width > size:  # a strip of a narrower processor is read by single vectors
        whole = f.select(f.compare("==", b_strip, size), whole, 0)

    def strip(name: str, j: Value, count: Operand) -> None:
        inside = f.binary("urem", j, size)
        right = f.address(b, f.binary("udiv", j, size) * b_strip + inside, ELEMENTS[dtype])
        strides = (a_row, a_step, b_step, b_strip, c_row)
        following = f.select(f.compare("==", inside, 0), ahead, 0)
        sizes = (rows, f.index(count), depth, adds, following)
        f.call(name, a, right, f.address(c, j, number), *strides, *sizes)

    start = f.index(0)
    if has_lines:
        lines = columns - f.binary("urem", columns, size)
        start = f.select(f.compare("==", rows, 1), lines, 0)
        step = f.select(f.compare("!=", ahead, 0), f.const(I64, size), 0)
        with f.loop(0, start, size) as across:
            right = f.address(b, f.binary("udiv", across.index, size) * b_strip, ELEMENTS[dtype])
            places = (a, right, f.address(c, across.index, number))
            fetched = f.address(right, ahead, ELEMENTS[dtype])
            strides = (a_row, a_step, b_step, c_row)
            f.call(row.name, *places, *strides, f.index(size), depth, adds, fetched, step)
    with f.loop(start, whole, width) as across:
        strip("gemm_wide", across.index, width)
    with f.loop(whole, columns, lanes) as across:
        strip("gemm_narrow", across.index, f.minimum(columns - across.index, lanes))
    f.finish()


def _definition(dtype: str) -> IntrinsicEmitter:
    def define(module: Module, target: Target) -> None:
        define_gemm_tile(module, target, dtype)

    return define


def _define_wide_strip(module: Module, blocks: tuple[Block, ...], half: tuple[Block, ...]) -> None:
    """Define a strip: a function over all its rows, in balanced blocks.

    Rows that are one block of half the width read the right operand once, not twice.
    """
    f = Function(module, "gemm_wide", PARAMS, internal=True)
    rows = f.args[8]
    if not half:
        _blocks(f, blocks, *balanced(f, rows, blocks[0].rows))
    else:
        is_one = f.compare("<", rows - half[-1].rows, len(half), signed=False)
        with f.either(is_one) as (then, otherwise):
            with then:
                for block in half:
                    with f.when(f.compare("==", rows, block.rows)):
                        _halves(f, block)
            with otherwise:
                _blocks(f, blocks, *balanced(f, rows, blocks[0].rows))
    f.finish()


def _halves(f: Function, block: Block) -> None:
    """Call the micro-kernel of `block` for both halves of a strip, with the parameters of `f`.

    The first prefetches a line of each row of what follows, the second another one.
    """
    a, b, c, a_row, a_step, b_step, b_strip, c_row, _, _, depth, adds, ahead = f.args
    element, size = ELEMENTS[block.dtype], strip_columns(block.dtype)
    width = block.vectors * block.lanes
    step = f.select(f.compare("!=", ahead, 0), f.const(I64, size), 0)
    share = f.select(f.compare("==", b_strip, size), depth * step, b_strip)
    for k in range(2):
        places = (a, f.address(b, k * width, element), f.address(c, k * width, block.element))
        fetched = f.address(b, ahead + share * k, element)
        strides = (a_row, a_step, b_step, c_row)
        f.call(block.name, *places, *strides, f.index(width), depth, adds, fetched, step)


def _define_narrow_strip(module: Module, blocks: tuple[Block, ...]) -> None:
    """Define a strip of one vector: the tallest blocks that fit, in descending order."""
    f = Function(module, "gemm_narrow", PARAMS, internal=True)
    rest, count = f.args[8], f.index(0)
    ends: list[tuple[int, Value]] = []
    for block in blocks:
        count = count + f.binary("udiv", rest, block.rows)
        rest = f.binary("urem", rest, block.rows)
        ends.append((block.rows, count))

    def height_of(number: Value) -> Value:
        height = f.index(blocks[-1].rows)
        for rows, end in reversed(ends[:-1]):
            height = f.select(f.compare("<", number, end), f.index(rows), height)
        return height

    _blocks(f, blocks, count, height_of)
    f.finish()


def _blocks(
    f: Function, blocks: tuple[Block, ...], count: Value, height_of: Callable[[Value], Value]
) -> None:
    """Call the micro-kernels of `count` blocks, one below the other, with the parameters of `f`.

    Each block prefetches as many lines as a strip has rows: the strip, if it is a line wide, else a
    part of a block of columns, which is contiguous.
    """
    a, b, c, a_row, a_step, b_step, b_strip, c_row, _, columns, depth, adds, ahead = f.args
    dtype = blocks[0].dtype
    element, size = ELEMENTS[dtype], strip_columns(dtype)
    strips = max(1, blocks[0].vectors * blocks[0].lanes // size)
    ahead_step = f.select(f.compare("!=", ahead, 0), f.const(I64, size), 0)
    share = f.select(f.compare("==", b_strip, size), depth * ahead_step, b_strip)
    prefetched = f.address(b, ahead, element)
    with f.loop(0, count, 1, (a, c, prefetched)) as down:
        a_block, c_block, own = down.values
        height = height_of(down.index)
        places, strides = (a_block, b, c_block), (a_row, a_step, b_step, c_row)
        for block in blocks:
            with f.when(f.compare("==", height, block.rows)):
                f.call(block.name, *places, *strides, columns, depth, adds, own, ahead_step)
        more = f.compare("<", down.index, strips - 1)
        following = f.address(own, f.select(more, share, 0), element)
        a_next, c_next = (
            f.address(a_block, height * a_row, blocks[0].element),
            f.address(c_block, height * c_row, blocks[0].element),
        )
        down.carry(a_next, c_next, following)


GEMM_TILES: Mapping[str, IntrinsicEmitter] = {name_of(d): _definition(d) for d in ELEMENTS}
"""The emitter of each routine, by name."""
