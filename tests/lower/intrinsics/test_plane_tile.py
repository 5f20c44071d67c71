"""The micro-kernel ``plane_tile`` agrees with numpy, and touches nothing else."""

from typing import Any

import numpy as np
import pytest

from tests.support.kernels import TARGETS
from tests.support.scheduled import plane_tile
from tests.support.tiles import guarded_tile, tile_function

NAMES = (
    *("a_row", "b_plane", "b_line", "b_tap", "c_row"),
    *("rows", "columns", "planes", "lines", "taps"),
)


KERNEL = tile_function("plane_tile", NAMES)


@pytest.fixture(scope="module", params=TARGETS)
def tile(request: pytest.FixtureRequest) -> Any:
    return guarded_tile(KERNEL, request.param)


@pytest.mark.parametrize("columns", [0, 1, 8, 17, 33, 64, 127])
@pytest.mark.parametrize("over", [(1, 1, 5), (3, 2, 3), (2, 1, 1), (0, 3, 3), (2, 3, 0)])
def test_it_is_the_sum_over_planes_lines_and_taps(
    tile: Any, columns: int, over: tuple[int, int, int]
) -> None:
    random = np.random.default_rng(columns)
    planes, lines, taps = over
    steps = planes * lines * taps
    a_row, b_tap, c_row = steps + 1, 2, columns + 3
    b_line = 2 * max(taps, 1) + 1
    b_plane = lines * b_line + 5
    seen = (planes - 1) * b_plane + (lines - 1) * b_line + (taps - 1) * b_tap + columns
    for rows in (0, 1, 5, 6, 7, 9, 13):
        weights = (rows - 1) * a_row + steps
        a = random.uniform(-1, 1, weights if rows and steps else 0).astype(np.float32)
        b = random.uniform(-1, 1, seen if columns and steps else 0).astype(np.float32)
        c = random.uniform(-1, 1, max(0, (rows - 1) * c_row + columns)).astype(np.float32)
        sizes = (a_row, b_plane, b_line, b_tap, c_row, rows, columns, *over)
        expected = c.copy()
        plane_tile(a, b, expected, *sizes)

        known = {"a": a.size, "b": b.size, "c": c.size, **dict(zip(NAMES, sizes, strict=True))}
        tile(a, b, c, *(known[name] for name in KERNEL.symbols))

        np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-5)
