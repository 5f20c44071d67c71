"""The product of a few rows with a strip of columns, in registers: ``gemm_tile``.

One run-time-parametric routine serves every shape.  It splits its tile into blocks of 6, 4, 2
and 1 rows by up to `strip_width` columns, each the work of one micro-kernel that holds the
whole block in registers and makes one pass over the depth.
"""

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


def _define_block(module: Module, strip: Strip, rows: int, vectors: int) -> None:
    """Add the micro-kernel of `rows` rows by `vectors` vectors, `last` lanes of the last one."""
    params = (PTR, PTR, PTR, I64, I64, I64, I64, I64, I64, I64)
    f = Function(module, _block_name(rows, vectors), params, internal=True)
    a, b, c, a_row, a_step, b_step, c_row, last, depth, adds = f.args
    vector = F32.of(strip.lanes)
    mask = first_lanes(f, last, strip.lanes)
    a_rows = [f.address(a, a_row * i, F32) for i in range(rows)]
    sets = strip.sets(rows, vectors)
    block = rows * vectors

    def step(a_at: Value, b_at: Value, sums: tuple[Value, ...]) -> list[Value]:
        """The running sums after one more step of the depth."""
        line = f.address(b, b_at, F32)
        terms = [f.load(f.address(line, v * strip.lanes, F32), vector) for v in range(vectors - 1)]
        end = f.address(line, (vectors - 1) * strip.lanes, F32)
        terms.append(masked_load(end, vector, mask))
        result: list[Value] = []
        for i, row in enumerate(a_rows):
            factor = f.splat(f.load(f.address(row, a_at, F32), F32), strip.lanes)
            result.extend(f.fma(factor, t, sums[i * vectors + v]) for v, t in enumerate(terms))
        return result

    zero = f.const(vector, 0)
    start = f.const(I64, 0)
    together = depth - f.binary("urem", depth, sets)
    with f.loop(0, together, sets, (start, start, *[zero] * (block * sets))) as loop:
        a_at, b_at, *sums = loop.values
        following: list[Value] = []
        for s in range(sets):
            following += step(a_at, b_at, tuple(sums[s * block : (s + 1) * block]))
            a_at, b_at = a_at + a_step, b_at + b_step
        loop.carry(a_at, b_at, *following)
    a_at, b_at, *sums = loop.results
    totals = sums[:block]
    for s in range(1, sets):
        totals = [x + y for x, y in zip(totals, sums[s * block :], strict=False)]
    if sets > 1:
        with f.loop(together, depth, 1, (a_at, b_at, *totals)) as tail:
            a_at, b_at, *sums = tail.values
            tail.carry(a_at + a_step, b_at + b_step, *step(a_at, b_at, tuple(sums)))
        totals = list(tail.results[2:])
    place = _Place(c, c_row, mask)
    with f.either(f.compare("!=", adds, 0)) as (add, begin):
        with add:
            place.write(rows, [x + y for x, y in zip(place.read(rows, vectors), totals, strict=True)])
        with begin:
            place.write(rows, totals)
    f.finish()
