"""The micro-kernel ``window_tile`` agrees with numpy, and touches nothing else."""

from typing import Any

import numpy as np
import pytest

from relax_egraph.lower.intrinsics.row import strip_columns
from tests.support.kernels import TARGETS
from tests.support.tiles import guarded_tile, tile_function

Array = np.ndarray[Any, Any]

STRIDES = ("a_row", "a_line", "a_tap", "b_step", "b_strip", "c_row")
NAMES = (*STRIDES, "rows", "columns", "lines", "taps", "depth")


LINE = strip_columns("float32")


KERNEL = tile_function("window_tile", (*NAMES, "adds"))


@pytest.fixture(scope="module", params=TARGETS)
def tile(request: pytest.FixtureRequest) -> Any:
    return guarded_tile(KERNEL, request.param)


OVER = [(1, 1, 4), (3, 1, 6), (2, 3, 5), (3, 2, 1), (0, 1, 3), (2, 1, 0)]


@pytest.mark.parametrize("in_strips", [False, True])
@pytest.mark.parametrize("columns", [0, 1, 8, 15, 16, 17, 32, 33, 64, 70, 100, 127])
@pytest.mark.parametrize("over", OVER)
def test_it_is_the_sum_over_lines_taps_and_depth(
    tile: Any, columns: int, over: tuple[int, int, int], in_strips: bool
) -> None:
    random = np.random.default_rng(columns)
    lines, taps, depth = over
    a_row, a_tap, c_row, steps = 2, depth + 1, columns + 3, lines * taps * depth
    a_line = max(1, taps) * a_tap + 2
    matrix = random.uniform(-1, 1, (steps, columns)).astype(np.float32)
    w, step, strip = stored(matrix, in_strips=in_strips)
    for rows in (0, 1, 5, 6, 7, 8, 9, 13, 30):
        last = (rows - 1) * a_row + (lines - 1) * a_line + (taps - 1) * a_tap + depth
        x = random.uniform(-1, 1, last if rows and steps else 0).astype(np.float32)
        y = random.uniform(-1, 1, max(0, (rows - 1) * c_row + columns)).astype(np.float32)
        adds, expected = rows % 2, y.copy()
        for i in range(rows):
            row = expected[i * c_row : i * c_row + columns]
            row *= adds
            for n, at in enumerate(np.ndindex(over)):
                seen = i * a_row + at[0] * a_line + at[1] * a_tap + at[2]
                row += x[seen] * matrix[n]

        sizes = (a_row, a_line, a_tap, step, strip, c_row, rows, columns, *over, adds)
        tile(x, w, y, *_symbols(x, w, y, sizes))

        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)


def stored(matrix: Array, *, in_strips: bool) -> tuple[Array, int, int]:
    """`matrix` with gaps between its rows, or in strips; the distances of rows and of strips."""
    steps, columns = matrix.shape
    if in_strips:
        count = -(-columns // LINE)
        padded = np.zeros((steps, count * LINE), np.float32)
        padded[:, :columns] = matrix
        strips = padded.reshape(steps, count, LINE).transpose(1, 0, 2)
        return strips.ravel(), LINE, steps * LINE
    rows = np.zeros((steps, columns + 3), np.float32)
    rows[:, :columns] = matrix
    return rows.ravel()[: rows.size - 3 if steps else 0], columns + 3, LINE


def _symbols(x: Array, w: Array, y: Array, sizes: tuple[int, ...]) -> list[int]:
    """The arguments in the order of the kernel's symbols."""
    known = {"a": x.size, "b": w.size, "c": y.size}
    known |= zip((*NAMES, "adds"), sizes, strict=True)
    return [known[name] for name in KERNEL.symbols]
