"""The product of a few rows with a strip of columns, in registers: ``gemm_tile``.

One run-time-parametric routine serves every shape.  It splits its tile into blocks of 6, 4, 2
and 1 rows by up to `strip_width` columns, each the work of one micro-kernel that holds the
whole block in registers and makes one pass over the depth.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_egraph.lower.emitter import Function
from relax_egraph.lower.module_text import F32, I64, PTR, Module, Type
from relax_egraph.lower.target import Target
from relax_egraph.lower.value import Operand, Value
from relax_egraph.lower.vector import first_lanes, masked_load, masked_store

NAME = "gemm_tile"

PARAMS: tuple[Type, ...] = (PTR, PTR, PTR, I64, I64, I64, I64, I64, I64, I64, I64)
"""``a, b, c, a_row, a_step, b_step, c_row, rows, columns, depth, adds``."""

_ROWS = (6, 4, 2, 1)
"""The heights of the micro-kernels; each but the first is the sum of bits of a remainder."""

_MOST_SETS = 4


@dataclass(frozen=True, slots=True)
class Strip:
    """How wide the micro-kernels are on a target: up to `vectors` vectors of `lanes` floats.

    `sums` is how many vectors of running sums keep the multipliers busy without spilling.
    """

    lanes: int
    vectors: int
    sums: int

    @property
    def width(self) -> int:
        """The number of columns."""
        return self.lanes * self.vectors

    def sets(self, rows: int, vectors: int) -> int:
        """How many steps of the depth run at once, each into running sums of its own.

        Small blocks need it to hide the latency of the multipliers; large ones would spill.
        """
        return max(1, min(_MOST_SETS, self.sums // (rows * vectors)))


def strip_of(target: Target) -> Strip:
    """6 rows by 4 vectors of 512 bits fill 32 registers, by 2 vectors the 16 of other targets."""
    lanes = target.lanes(32)
    return Strip(lanes, 4, 16) if target.vector_bits == 512 else Strip(lanes, 2, 8)


def define_gemm_tile(module: Module, target: Target) -> None:
    """Add ``gemm_tile(a, b, c, a_row, a_step, b_step, c_row, rows, columns, depth, adds)``.

    ``c[i·c_row + j] = Σₖ a[i·a_row + k·a_step] · b[k·b_step + j]`` for ``i < rows``,
    ``j < columns``, ``k < depth``, of float32; where `adds` is not 0 the sum is added to `c`.
    `c` overlaps neither `a` nor `b`; nothing beyond the named elements is read or written.
    """
    strip = strip_of(target)
    for rows in _ROWS:
        for vectors in range(1, strip.vectors + 1):
            _define_block(module, strip, rows, vectors)
    f = Function(module, NAME, PARAMS)
    a, b, c, a_row, a_step, b_step, c_row, rows, columns, depth, adds = f.args
    with f.loop(0, columns, strip.width) as across:
        j = across.index
        width = f.minimum(columns - j, strip.width)
        vectors = f.binary("udiv", width + (strip.lanes - 1), strip.lanes)
        last = width - (vectors - 1) * strip.lanes
        b_strip, c_strip = f.address(b, j, F32), f.address(c, j, F32)

        def block(height: int, i: Operand) -> None:
            """Call the micro-kernel of `height` rows from row `i` on, as wide as is needed."""
            row = f.index(i)
            a_block = f.address(a, row * a_row, F32)
            c_block = f.address(c_strip, row * c_row, F32)
            for count in range(strip.vectors, 0, -1):
                with f.when(f.compare("==", vectors, count)):
                    passed = (a_row, a_step, b_step, c_row, last, depth, adds)
                    f.call(_block_name(height, count), a_block, b_strip, c_block, *passed)

        tall = _ROWS[0]
        whole = rows - f.binary("urem", rows, tall)
        with f.loop(0, whole, tall) as down:
            block(tall, down.index)
        rest = rows - whole
        for height in _ROWS[1:]:
            with f.when(f.compare("!=", rest & height, 0)):
                block(height, whole + (rest & (8 - 2 * height)))
    f.finish()


def _block_name(rows: int, vectors: int) -> str:
    return f"gemm_{rows}x{vectors}"


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of memory as `vectors` vectors of `lanes` floats, the last of them under `mask`."""

    vectors: int
    lanes: int
    mask: Value

    def places(self, pointer: Value) -> list[Value]:
        """The addresses of the vectors from `pointer` on."""
        f = pointer.function
        return [f.address(pointer, v * self.lanes, F32) for v in range(self.vectors)]

    def read(self, pointer: Value) -> list[Value]:
        """The vectors at `pointer`; what is masked off is 0."""
        *whole, last = self.places(pointer)
        type = F32.of(self.lanes)
        f = pointer.function
        return [*(f.load(place, type) for place in whole), masked_load(last, type, self.mask)]

    def write(self, pointer: Value, values: Sequence[Value]) -> None:
        """Write the vectors at `pointer`."""
        *whole, last = self.places(pointer)
        for place, value in zip(whole, values, strict=False):
            pointer.function.store(value, place)
        masked_store(values[-1], last, self.mask)


def _define_block(module: Module, strip: Strip, rows: int, vectors: int) -> None:
    """Add the micro-kernel of `rows` rows by `vectors` vectors, `last` lanes of the last one."""
    params = (PTR, PTR, PTR, I64, I64, I64, I64, I64, I64, I64)
    f = Function(module, _block_name(rows, vectors), params, internal=True)
    a, b, c, a_row, a_step, b_step, c_row, last, depth, adds = f.args
    row = _Row(vectors, strip.lanes, first_lanes(f, last, strip.lanes))
    a_rows = [f.address(a, a_row * i, F32) for i in range(rows)]
    sets, block = strip.sets(rows, vectors), rows * vectors

    def step(a_at: Value, b_at: Value, sums: Sequence[Value]) -> list[Value]:
        """The running sums, row by row, after one more step of the depth."""
        terms = row.read(f.address(b, b_at, F32))
        factors = [f.splat(f.load(f.address(p, a_at, F32), F32), strip.lanes) for p in a_rows]
        products = [(x, t) for x in factors for t in terms]
        return [f.fma(x, t, total) for (x, t), total in zip(products, sums, strict=True)]

    zero, start = f.const(F32.of(strip.lanes), 0), f.const(I64, 0)
    together = depth - f.binary("urem", depth, sets)
    with f.loop(0, together, sets, (start, start, *[zero] * (block * sets))) as loop:
        a_at, b_at, *sums = loop.values
        following: list[Value] = []
        for first in range(0, block * sets, block):
            following += step(a_at, b_at, sums[first : first + block])
            a_at, b_at = a_at + a_step, b_at + b_step
        loop.carry(a_at, b_at, *following)
    a_at, b_at, *sums = loop.results
    totals = sums[:block]
    for first in range(block, block * sets, block):
        totals = [x + y for x, y in zip(totals, sums[first : first + block], strict=True)]
    if sets > 1:
        with f.loop(together, depth, 1, (a_at, b_at, *totals)) as tail:
            a_at, b_at, *sums = tail.values
            tail.carry(a_at + a_step, b_at + b_step, *step(a_at, b_at, sums))
        totals = list(tail.results[2:])
    c_rows = [f.address(c, c_row * i, F32) for i in range(rows)]
    by_row = [totals[i * vectors : (i + 1) * vectors] for i in range(rows)]
    with f.either(f.compare("!=", adds, 0)) as (add, begin):
        with add:
            for place, values in zip(c_rows, by_row, strict=True):
                row.write(place, [x + y for x, y in zip(row.read(place), values, strict=True)])
        with begin:
            for place, values in zip(c_rows, by_row, strict=True):
                row.write(place, values)
    f.finish()
