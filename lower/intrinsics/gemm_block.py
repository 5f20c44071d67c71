"""Micro-kernels of products: a block of the result in registers, one pass over the depth.

A block is a few rows by a few vectors of columns.  Each step of the depth reads a vector of the
right operand for each vector of columns, and a number of the left operand for each row.  A right
operand of fewer bits is widened to float32 in registers, which is exact.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.half_precision import from_bits
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.module_text import F32, I8, I16, I32, I64, PTR, Module, Type
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.emit.vector import first_lanes, masked_load, masked_store

PARAMS: tuple[Type, ...] = (PTR, PTR, PTR, I64, I64, I64, I64, I64, I64, I64, PTR, I64)
"""``a, b, c, a_row, a_step, b_step, c_row, columns, depth, adds, ahead, ahead_step``.

`adds` is 0 or 1.  Each step of the depth prefetches the cache line at `ahead`, which advances by
`ahead_step` elements of `b`.
"""

ELEMENTS: Mapping[str, Type] = {"float32": F32, "bfloat16": I16, "int8": I8}
"""The memory types of elements of the right operand, by dtype."""

TALL = 6
"""The maximal rows of a block as wide as a strip."""

_WIDE_ROWS = (6, 5, 4, 3, 2, 1)
_NARROW_ROWS = (4, 1)
_BUSY = 8
"""The running sums that hide the latency of two multipliers of four cycles each."""

_MOST_SETS = 4
_FEWEST_ROWS_AHEAD = 4
"""The minimal rows of a block that prefetches: smaller ones are limited by memory anyway.

Blocks of ``int8`` always prefetch: widening fills the reorder window before the next lines.
"""


@dataclass(frozen=True, slots=True)
class Block:
    """The size of a block: `rows` by `vectors` vectors of `lanes` floats.

    A block of a single vector may have fewer columns than lanes.  The right operand is of `dtype`,
    one of `ELEMENTS`.
    """

    rows: int
    vectors: int
    lanes: int
    dtype: str

    @property
    def name(self) -> str:
        """The name of its micro-kernel."""
        return f"gemm_{self.rows}x{self.vectors}"

    @property
    def sets(self) -> int:
        """The steps of the depth that run at once, each with its own running sums: 1, 2 or 4.

        Small blocks need several to keep the multipliers busy.
        """
        sets = 1
        while sets < _MOST_SETS and sets * self.rows * self.vectors < _BUSY:
            sets *= 2
        return sets


def wide(target: Target, dtype: str) -> tuple[Block, ...]:
    """Blocks as wide as a strip, the tallest first.

    6 rows by 4 vectors of 512 bits fill 32 registers, by 2 vectors the 16 of other targets.
    """
    vectors = 4 if target.vector_bits == 512 else 2
    return tuple(Block(rows, vectors, target.lanes(32), dtype) for rows in _WIDE_ROWS)


def narrow(target: Target, dtype: str) -> tuple[Block, ...]:
    """Blocks of one vector, the tallest first, for the remaining columns.

    A vector is read for so many rows that its cost is negligible.
    """
    tallest = 12 if target.vector_bits == 512 else 8
    lanes = target.lanes(32)
    return tuple(Block(rows, 1, lanes, dtype) for rows in (tallest, *_NARROW_ROWS))


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of `block` in memory, of `dtype`; a single vector is under `mask` if there is one."""

    block: Block
    mask: Value | None
    dtype: str = "float32"

    def places(self, pointer: Value) -> list[Value]:
        """The addresses of the vectors from `pointer` on."""
        f, block, element = pointer.function, self.block, ELEMENTS[self.dtype]
        return [f.address(pointer, v * block.lanes, element) for v in range(block.vectors)]

    def read(self, pointer: Value) -> list[Value]:
        """The vectors at `pointer` as float32; masked lanes are 0."""
        type = ELEMENTS[self.dtype].of(self.block.lanes)
        if self.mask is not None:
            return [_widened(masked_load(pointer, type, self.mask), self.dtype)]
        loads = [pointer.function.load(place, type) for place in self.places(pointer)]
        return [_widened(vector, self.dtype) for vector in loads]

    def write(self, pointer: Value, values: Sequence[Value]) -> None:
        """Store the float32 vectors at `pointer`."""
        for place, value in zip(self.places(pointer), values, strict=True):
            if self.mask is not None:
                masked_store(value, place, self.mask)
            else:
                pointer.function.store(value, place)


def _widened(stored: Value, dtype: str) -> Value:
    """Lanes of `dtype` in memory format, as float32."""
    f = stored.function
    match dtype:
        case "int8":
            return f.convert("sitofp", f.convert("sext", stored, I32), F32)
        case "bfloat16":
            return from_bits(stored, dtype)
        case _:
            return stored


_At = tuple[Value, Value, Value]
"""The position of a step of the depth: the index into rows of `a`, the row of `b`, `ahead`."""


def define_block(module: Module, block: Block) -> None:
    """Define the micro-kernel of `block`, with the parameters `PARAMS`."""
    f = Function(module, block.name, PARAMS, internal=True)
    a, b, c, a_row, a_step, b_step, c_row, columns, depth, adds, ahead, ahead_step = f.args
    mask = first_lanes(f, columns, block.lanes) if block.vectors == 1 else None
    row, right, element = _Row(block, mask), _Row(block, mask, block.dtype), ELEMENTS[block.dtype]
    size = block.rows * block.vectors
    a_rows = [f.address(a, a_row * i if i else 0, F32) for i in range(block.rows)]
    c_rows = [f.address(c, c_row * i if i else 0, F32) for i in range(block.rows)]

    def step(at: _At, sums: Sequence[Value]) -> tuple[_At, list[Value]]:
        """The position of the next step, and the running sums after this one, by rows."""
        a_at, b_at, ahead_at = at
        terms = right.read(b_at)
        if block.rows >= _FEWEST_ROWS_AHEAD or block.dtype == "int8":
            _prefetch(ahead_at)
        factors = [f.splat(f.load(f.address(p, a_at, F32), F32), block.lanes) for p in a_rows]
        pairs = [(x, t) for x in factors for t in terms]
        following = [f.fma(x, t, total) for (x, t), total in zip(pairs, sums, strict=True)]
        b_next = f.address(b_at, b_step, element)
        ahead_next = f.address(ahead_at, ahead_step, element)
        return (a_at + a_step, b_next, ahead_next), following

    zeros = [f.const(F32.of(block.lanes), 0)] * size
    with f.loop(0, adds, 1, zeros) as initial:  # at most one iteration: the initial sums
        initial.carry(*(value for place in c_rows for value in row.read(place)))
    sums, start, sets = initial.results, (f.const(I64, 0), b, ahead), block.sets
    unrolled = depth if sets == 1 else depth - f.binary("urem", depth, sets)
    with f.loop(0, unrolled, sets, (*start, *sums, *zeros * (sets - 1))) as main:
        a_at, b_at, ahead_at, *running = main.values
        at, following = (a_at, b_at, ahead_at), list[Value]()
        for first in range(0, size * sets, size):
            at, after = step(at, running[first : first + size])
            following += after
        main.carry(*at, *following)
    a_at, b_at, ahead_at, *running = main.results
    totals = running[:size]
    for first in range(size, size * sets, size):
        totals = [x + y for x, y in zip(totals, running[first : first + size], strict=True)]
    if sets > 1:
        with f.loop(unrolled, depth, 1, (a_at, b_at, ahead_at, *totals)) as tail:
            a_at, b_at, ahead_at, *running = tail.values
            at, after = step((a_at, b_at, ahead_at), running)
            tail.carry(*at, *after)
        totals = list(tail.results[3:])
    for i, place in enumerate(c_rows):
        row.write(place, totals[i * block.vectors : (i + 1) * block.vectors])
    f.finish()


def _prefetch(pointer: Value) -> None:
    """Prefetch into the second-level cache: the first is full."""
    f = pointer.function
    read, second, data = f.const(I32, 0), f.const(I32, 2), f.const(I32, 1)
    f.call("llvm.prefetch.p0", pointer, read, second, data)
