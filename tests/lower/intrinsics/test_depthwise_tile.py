"""The micro-kernel ``depthwise_tile`` agrees with numpy, and touches nothing else."""

from typing import Any

import numpy as np
import pytest

from tests.support.kernels import TARGETS
from tests.support.tiles import guarded_tile, tile_function

Array = np.ndarray[Any, Any]

STRIDES = ("a_row", "a_line", "a_tap", "b_line", "b_tap", "c_row")
NAMES = (*STRIDES, "rows", "columns", "lines", "taps", "adds")


KERNEL = tile_function("depthwise_tile", NAMES)


@pytest.fixture(scope="module", params=TARGETS)
def tile(request: pytest.FixtureRequest) -> Any:
    return guarded_tile(KERNEL, request.param)


@pytest.mark.parametrize("columns", [0, 1, 8, 15, 16, 17, 32, 33, 64, 70, 100, 127])
@pytest.mark.parametrize("over", [(1, 1), (3, 3), (2, 5), (3, 1), (0, 3), (2, 0)])
def test_it_is_the_sum_over_lines_and_taps(tile: Any, columns: int, over: tuple[int, int]) -> None:
    random = np.random.default_rng(columns)
    lines, taps = over
    a_row, a_tap, b_tap, c_row = columns + 1, columns + 3, columns + 2, columns + 3
    b_line, a_line = taps * b_tap + 1, max(1, taps) * a_tap + 2
    weights = (lines - 1) * b_line + (taps - 1) * b_tap + columns if lines and taps else 0
    w = random.uniform(-1, 1, weights).astype(np.float32)
    for rows in (0, 1, 5, 6, 7, 8, 11, 12, 13, 30):
        last = (rows - 1) * a_row + (lines - 1) * a_line + (taps - 1) * a_tap + columns
        x = random.uniform(-1, 1, last if rows and lines and taps else 0).astype(np.float32)
        y = random.uniform(-1, 1, max(0, (rows - 1) * c_row + columns)).astype(np.float32)
        adds, expected = rows % 2, y.copy()
        for i in range(rows):
            row = expected[i * c_row : i * c_row + columns]
            row *= adds
            for line, tap in np.ndindex(over):
                seen, weight = i * a_row + line * a_line + tap * a_tap, line * b_line + tap * b_tap
                row += x[seen : seen + columns] * w[weight : weight + columns]

        sizes = (a_row, a_line, a_tap, b_line, b_tap, c_row, rows, columns, *over, adds)
        tile(x, w, y, *_symbols(x, w, y, sizes))

        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)


def _symbols(x: Array, w: Array, y: Array, sizes: tuple[int, ...]) -> list[int]:
    """The arguments in the order of the kernel's symbols."""
    known = {"a": x.size, "b": w.size, "c": y.size, **dict(zip(NAMES, sizes, strict=True))}
    return [known[name] for name in KERNEL.symbols]
