"""The micro-kernels ``sliding_tile_3`` and so on agree with numpy, and touch nothing else."""

from typing import Any

import numpy as np
import pytest

from relax_egraph.lower.intrinsics.sliding import TAPS, name_of
from tests.support.kernels import TARGETS
from tests.support.tiles import guarded_tile, tile_function

STRIDES = ("a_row", "a_line", "b_line", "b_tap", "c_row")
NAMES = (*STRIDES, "rows", "columns", "lines")


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t.vector_bits))
@pytest.mark.parametrize("taps", TAPS)
@pytest.mark.parametrize("columns", [0, 1, 7, 8, 16, 17, 31, 32])
def test_it_is_the_sum_over_lines_and_taps(columns: int, taps: int, target: Any) -> None:
    kernel = tile_function(name_of(taps), NAMES)
    tile = guarded_tile(kernel, target)
    random = np.random.default_rng(columns)
    a_row, b_tap, c_row = columns + 1, columns + 2, columns + 3
    for rows, lines in ((0, 2), (1, 3), (4, 0), (7, 1), (8, 5), (9, 2), (14, 5), (30, 1)):
        a_line, b_line = (rows + taps) * a_row + 2, taps * b_tap + 1
        seen = (rows + taps - 2) * a_row + (lines - 1) * a_line + columns
        is_empty = not (rows and lines and columns)
        x = random.uniform(-1, 1, 0 if is_empty else seen).astype(np.float32)
        size = (lines - 1) * b_line + (taps - 1) * b_tap + columns
        w = random.uniform(-1, 1, 0 if is_empty else size).astype(np.float32)
        y = random.uniform(-1, 1, max(0, (rows - 1) * c_row + columns)).astype(np.float32)
        expected = y.copy()
        for i in range(rows):
            row = expected[i * c_row : i * c_row + columns]
            row[...] = 0
            for line, tap in np.ndindex(lines, taps):
                at, weight = (i + tap) * a_row + line * a_line, line * b_line + tap * b_tap
                row += x[at : at + columns] * w[weight : weight + columns]

        sizes = (a_row, a_line, b_line, b_tap, c_row, rows, columns, lines)
        known = {"a": x.size, "b": w.size, "c": y.size, **dict(zip(NAMES, sizes, strict=True))}
        tile(x, w, y, *(known[name] for name in kernel.symbols))

        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)
