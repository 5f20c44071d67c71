"""Micro-kernels of products: a block of the result in registers, one pass over the depth.

A block is a few rows by a few vectors of columns.  Each step of the depth reads a vector of the
right operand for each vector of columns, and a number of the left operand for each row.  All are of
one type, except that a right operand of fewer bits is widened to float32 in registers, which is
exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.machine import machine_of
from relax_egraph.lower.emit.module_text import I32, I64, PTR, Module, Type
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.emit.vector import first_lanes
from relax_egraph.lower.intrinsics.left import Left, Read
from relax_egraph.lower.intrinsics.row import ELEMENTS, Row, computed, dtype_of, strip_columns
from relax_egraph.lower.intrinsics.tile_sizes import micro_tile

PARAMS: tuple[Type, ...] = (PTR, PTR, PTR, *(I64,) * 7, PTR, I64)
"""``a, b, c, a_row, a_step, b_step, c_row, columns, depth, adds, ahead, ahead_step``.

`adds` is 0 or 1.  Each step of the depth prefetches the cache line at `ahead`, which advances by
`ahead_step` elements of `b`.
"""

_NARROW_ROWS = (4, 1)
_MOST_SETS = 4
_MOST_ROWS_OF_STREAMS = 2
_FEWEST_ROWS_AHEAD = 4
"""The minimal rows of a block that prefetches: smaller ones are limited by memory anyway.

Blocks of ``int8`` always prefetch: widening fills the reorder window before the next lines.
"""


@dataclass(frozen=True, slots=True)
class Block:
    """The size of a block: `rows` by `vectors` vectors of `lanes` numbers.

    A block of a single vector may have fewer columns than lanes.  The right operand is of `dtype`,
    one of `ELEMENTS`.  `busy` is the number of running sums that hide the latency of multipliers.
    """

    rows: int
    vectors: int
    lanes: int
    dtype: str
    busy: int

    @property
    def name(self) -> str:
        """The name of its micro-kernel."""
        return f"gemm_{self.rows}x{self.vectors}"

    @property
    def element(self) -> Type:
        """The type of the left operand, of products and of sums."""
        return computed(self.dtype)

    @property
    def sets(self) -> int:
        """The steps of the depth that run at once, each with its own running sums: 1, 2 or 4.

        Small blocks need several to keep the multipliers busy.
        """
        sets = 1
        while sets < _MOST_SETS and sets * self.rows * self.vectors < self.busy:
            sets *= 2
        return sets

    @property
    def streams(self) -> int:
        """The parts of the depth that are read at once, each by steps of its own: 1 or `sets`.

        A block of few rows waits for memory, which gives several streams at a higher rate than one:
        1.7 times on Zen 3.
        """
        return self.sets if self.rows <= _MOST_ROWS_OF_STREAMS else 1


def wide(target: Target, dtype: str) -> tuple[Block, ...]:
    """Blocks as wide as the micro-tile, the tallest first."""
    tile = micro_tile(machine_of(target), computed(dtype).bits)
    return tuple(_block(rows, tile.vectors, target, dtype) for rows in range(tile.rows, 0, -1))


_HALVES = (8, 7)
"""The rows that are one block of half the width, and else two of the whole width."""


def halves(target: Target, dtype: str) -> tuple[Block, ...]:
    """Blocks of half the micro-tile's width, the tallest first, if it is several cache lines wide.

    A right operand that is so wide is read from the second-level cache.
    """
    machine, bits = machine_of(target), computed(dtype).bits
    tile = micro_tile(machine, bits)
    if tile.vectors * machine.lanes(bits) <= machine.line_of(bits):
        return ()
    return tuple(_block(rows, tile.vectors // 2, target, dtype) for rows in _HALVES)


def line(target: Target, dtype: str) -> Block:
    """A row as wide as a cache line of the right operand, so that each is read at once."""
    return _block(1, strip_columns(dtype) // target.lanes(computed(dtype).bits), target, dtype)


def fits(target: Target, row: Block) -> bool:
    """Whether registers hold the sums of `row`, beside as many others, also for products."""
    return target.has_fma and 2 * row.vectors <= machine_of(target).registers


def narrow(target: Target, dtype: str) -> tuple[Block, ...]:
    """Blocks of one vector, the tallest first, for the remaining columns.

    A vector is read for so many rows that its cost is negligible.
    """
    tallest = 12 if machine_of(target).registers == 32 else 8
    return tuple(_block(rows, 1, target, dtype) for rows in (tallest, *_NARROW_ROWS))


def _block(rows: int, vectors: int, target: Target, dtype: str) -> Block:
    machine = machine_of(target)
    lanes = target.lanes(computed(dtype).bits)
    latency = machine.latency if computed(dtype).is_float else 1
    return Block(rows, vectors, lanes, dtype, machine.multipliers * latency)


_At = tuple[Value, Value, Value]
"""The position of a step of the depth: the index into rows of `a`, the row of `b`, `ahead`."""


def define_block(module: Module, block: Block) -> None:
    """Define the micro-kernel of `block`, with the parameters `PARAMS`."""
    f = Function(module, block.name, PARAMS, internal=True)
    a, b, c, a_row, a_step, b_step, c_row, columns, depth, adds, ahead, ahead_step = f.args
    mask = first_lanes(f, columns, block.lanes) if block.vectors == 1 else None
    right = Row(block.vectors, block.lanes, mask, block.dtype)
    row = replace(right, dtype=dtype_of(block.dtype))
    number, element = block.element, ELEMENTS[block.dtype]
    size = block.rows * block.vectors
    a_rows = [f.address(a, a_row * i if i else 0, number) for i in range(block.rows)]
    c_rows = [f.address(c, c_row * i if i else 0, number) for i in range(block.rows)]

    def step(at: _At, read: Read, sums: Sequence[Value]) -> tuple[_At, list[Value]]:
        """The position of the next step, and the running sums after this one, by rows."""
        a_at, b_at, ahead_at = at
        terms = right.read(b_at)
        if block.rows >= _FEWEST_ROWS_AHEAD or block.dtype == "int8":
            _prefetch(ahead_at)
        pairs = [(x, t) for x in read(a_at) for t in terms]
        following = [_multiply_add(x, t, total) for (x, t), total in zip(pairs, sums, strict=True)]
        b_next = f.address(b_at, b_step, element)
        ahead_next = f.address(ahead_at, ahead_step, element)
        return (a_at + a_step, b_next, ahead_next), following

    sums, start, sets = row.sums_at(c_rows, adds), (f.const(I64, 0), b, ahead), block.sets
    zeros = [f.const(number.of(block.lanes), 0)] * size
    left, streams = Left(a_rows, a_step, block.lanes, number), block.streams
    steps = max(sets // streams, left.steps)
    share = f.binary("udiv", depth, streams) if streams > 1 else depth
    whole = left.whole(share, steps) if steps > 1 else share

    def onward(at: _At, shares: int) -> _At:
        """The position so many parts of the depth further."""
        if not shares:
            return at
        moved = whole * shares
        return at[0] + a_step * moved, f.address(at[1], b_step * moved, element), at[2]

    with f.loop(0, whole, steps, (*start, *sums, *zeros * (sets - 1))) as main:
        a_at, b_at, ahead_at, *running = main.values
        ends: list[_At] = []
        for stream in range(streams):
            at = onward((a_at, b_at, ahead_at), stream)
            for k, read in enumerate(left.reads(at[0], steps)):
                first = (stream + k % (sets // streams)) * size
                own = slice(first, first + size)
                at, running[own] = step(at, read, running[own])
            ahead_at = at[2]
            ends.append(at)
        main.carry(*ends[0][:2], ahead_at, *running)
    a_at, b_at, ahead_at, *running = main.results
    totals = running[:size]
    for first in range(size, size * sets, size):
        totals = [x + y for x, y in zip(totals, running[first : first + size], strict=True)]
    if streams > 1 or steps > 1:
        rest = onward((a_at, b_at, ahead_at), streams - 1)
        with f.loop(whole * streams, depth, 1, (*rest, *totals)) as tail:
            a_at, b_at, ahead_at, *running = tail.values
            at, after = step((a_at, b_at, ahead_at), left.read, running)
            tail.carry(*at, *after)
        totals = list(tail.results[3:])
    row.write_all(c_rows, totals)
    f.finish()


def _multiply_add(x: Value, y: Value, total: Value) -> Value:
    """``x · y + total``: integers wrap."""
    return total.function.fma(x, y, total) if total.type.is_float else x * y + total


def _prefetch(pointer: Value) -> None:
    """Prefetch into the second-level cache: the first is full."""
    f = pointer.function
    read, second, data = f.const(I32, 0), f.const(I32, 2), f.const(I32, 1)
    f.call("llvm.prefetch.p0", pointer, read, second, data)
