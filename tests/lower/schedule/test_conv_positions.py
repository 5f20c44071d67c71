"""Convolutions of planes with few features, which are multiplied in vectors of positions."""

from typing import Any

import numpy as np
import pytest

from relax_egraph.ir import dims
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.schedule.conv import positions
from tests.lower.schedule.test_conv import LAST, calls, computed, convolution, defined, numbers
from tests.support.kernels import TARGETS
from tests.support.scheduled import assert_same_results

SHAPES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 8, 19, 21), (12, 2, 3, 3), {"groups": 4, "padding": (1,)}),
    ((1, 6, 9, 35), (9, 2, 2, 5), {"groups": 3, "padding": (0, 3, 2, 0)}),
    ((1, 4, 12, 11), (6, 2, 3, 3), {"groups": 2, "padding": (4,), "dilation": (3, 2)}),
    ((2, 5, 40, 30), (3, 5, 3, 3), {"padding": (1,)}),
    ((1, 2, 7, 3), (4, 1, 1, 3), {"groups": 2, "padding": (0, 4)}),
    ((2, 36, 12, 15), (66, 18, 1, 1), {"groups": 2}),
    ((1, 24, 7, 7), (32, 3, 1, 1), {"groups": 8}),
    ((1, 6, 16, 32), (40, 3, 1, 1), {"groups": 2}),
    ((1, 6, 9, 9), (8, 3, 1, 1), {"groups": 2, "padding": (1, 0)}),
]


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t.vector_bits))
@pytest.mark.parametrize(("data", "weight", "attrs"), SHAPES)
def test_few_features_are_multiplied_by_positions(
    data: tuple[int, ...], weight: tuple[int, ...], attrs: dict[str, Any], target: Target
) -> None:
    x, w = numbers(*data), numbers(*weight, seed=1)
    function = convolution("conv2d", data, weight, **attrs)
    expected = defined("conv2d", x, w, **attrs)

    actual = computed(function, (x, w), expected.shape, target)

    assert calls(function) == ["plane_tile"]
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("size", [1 << 8, 1 << 11])
def test_bands_of_every_size_compute_the_same(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(positions, "ELEMENTS", size)
    x, w = numbers(1, 8, 23, 20), numbers(8, 2, 3, 3, seed=1)
    function = convolution("conv2d", x.shape, w.shape, groups=4, padding=(1,))

    actual = computed(function, (x, w), (1, 8, 23, 20))

    expected = defined("conv2d", x, w, groups=4, padding=(1,))
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def test_other_layouts_strides_and_sizes_are_multiplied_by_features() -> None:
    data, weight = (1, 8, 20, 20), (8, 2, 3, 3)
    rows = dims.symbol("h")

    last = convolution("conv2d", (1, 20, 20, 8), (3, 3, 2, 8), groups=4, **LAST)
    strided = convolution("conv2d", data, weight, groups=4, strides=(2,))
    symbolic = convolution("conv2d", (1, 8, rows, 20), weight, groups=4)
    many = convolution("conv2d", data, (64, 2, 3, 3), groups=4)

    assert not any("plane_tile" in calls(f) for f in (last, strided, symbolic, many))


def test_the_loops_mean_what_is_compiled() -> None:
    function = convolution("conv2d", (1, 4, 9, 10), (6, 2, 3, 3), groups=2, padding=(1,))

    assert_same_results(function)
