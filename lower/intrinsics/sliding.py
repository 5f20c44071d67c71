"""Depthwise convolution by windows that slide: ``sliding_tile_3``, ``_5`` and ``_7``.

The windows of adjacent positions overlap.  Each place is read once for all windows that see it, and
the weights of a line of taps stay in registers, so that multiply-adds, not reads, take the time.
"""

from collections.abc import Iterator, Mapping

from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.module_text import F32, I64, PTR, IntrinsicEmitter, Module, Type
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.emit.vector import first_lanes
from relax_egraph.lower.intrinsics.row import Row
from relax_egraph.lower.intrinsics.strips import in_blocks

TAPS = (3, 5, 7)
"""The taps of a line; there is one routine for each number."""

TALLEST = 8
"""The maximal positions of a block: their sums, 7 weights and a place are 16 registers."""

PARAMS: tuple[Type, ...] = (PTR, PTR, PTR, *(I64,) * 8)
"""``a, b, c, a_row, a_line, b_line, b_tap, c_row, rows, columns, lines``."""


def name_of(taps: int) -> str:
    """The name of the routine for lines of `taps`."""
    return f"sliding_tile_{taps}"


def _definition(taps: int) -> IntrinsicEmitter:
    def define_sliding_tile(module: Module, target: Target) -> None:
        """Add ``sliding_tile_<taps>(a, b, c, a_row, a_line, …, c_row, rows, columns, lines)``.

        ``c[i·c_row + j] = Σ a[(i + t)·a_row + l·a_line + j] · b[l·b_line + t·b_tap + j]`` of
        float32 for ``i < rows``, ``j < columns``, over ``l < lines``, ``t < taps``.  `c` overlaps
        neither `a` nor `b`; no other elements are read or written.
        """
        f = Function(module, name_of(taps), PARAMS)
        a, b, c, *strides, rows, columns, lines = f.args
        lanes = target.lanes(32)
        whole = columns - f.binary("urem", columns, lanes)
        for masked, first, end in ((False, f.index(0), whole), (True, whole, columns)):
            name = _strip(module, taps, lanes, masked=masked)
            with f.loop(first, end, lanes) as across:
                j = across.index
                places = (f.address(p, j, F32) for p in (a, b, c))
                f.call(name, *places, *strides, rows, columns - j, lines)
        f.finish()

    return define_sliding_tile


def _strip(module: Module, taps: int, lanes: int, *, masked: bool) -> str:
    """Define the routine of a single vector of columns, in balanced blocks; returns its name."""
    names = [_block(module, taps, lanes, n + 1, masked=masked) for n in range(TALLEST)]
    name = f"sliding_{taps}{'_masked' if masked else ''}"
    f = Function(module, name, PARAMS, internal=True)
    a, b, c, a_row, *steps, c_row, rows, columns, lines = f.args
    for height, own, (a_at, c_at) in in_blocks(f, rows, TALLEST, (a, a_row), (c, c_row)):
        f.call(names[height - 1], a_at, b, c_at, a_row, *steps, c_row, own, columns, lines)
    f.finish()
    return name


def _block(module: Module, taps: int, lanes: int, height: int, *, masked: bool) -> str:
    """Define the micro-kernel of `height` positions by a vector; returns its name."""
    name = f"sliding_{taps}_{height}{'_masked' if masked else ''}"
    f = Function(module, name, PARAMS, internal=True)
    a, b, c, a_row, a_line, b_line, b_tap, c_row, _, columns, lines = f.args
    row = Row(1, lanes, first_lanes(f, columns, lanes) if masked else None)
    zeros = [f.const(F32.of(lanes), 0)] * height
    with f.loop(0, lines, 1, (a, b, *zeros)) as over_lines:
        line, weights, *sums = over_lines.values
        factors = list(_rows(row, weights, b_tap, taps))
        for place, x in enumerate(_rows(row, line, a_row, height + taps - 1)):
            for i in range(max(0, place - taps + 1), min(place + 1, height)):
                sums[i] = f.fma(x, factors[place - i], sums[i])
        over_lines.carry(f.address(line, a_line, F32), f.address(weights, b_line, F32), *sums)
    _, _, *totals = over_lines.results
    row.write_all([f.address(c, c_row * i if i else 0, F32) for i in range(height)], totals)
    f.finish()
    return name


def _rows(row: Row, first: Value, distance: Value, count: int) -> Iterator[Value]:
    """The vectors of `count` rows, the first of which is at `first`."""
    f = first.function
    for k in range(count):
        (vector,) = row.read(f.address(first, distance * k if k else 0, F32))
        yield vector


SLIDING_TILES: Mapping[str, IntrinsicEmitter] = {name_of(n): _definition(n) for n in TAPS}
"""The emitter of each routine, by name."""
