"""Depthwise convolutions of planes with long lines, which are read and written where they are."""

from typing import Any

import numpy as np
import pytest

from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.schedule import schedule
from relax_egraph.tir.rewrite import statements
from relax_egraph.tir.stmt import PrimFunc, TensorIntrinsic
from tests.lower.schedule.test_conv import computed, convolution, defined, numbers
from tests.support.kernels import TARGETS
from tests.support.scheduled import assert_same_results

ATTRS: list[dict[str, Any]] = [
    {"padding": (1,)},
    {"padding": (1,), "strides": (2,)},
    {"padding": (0, 3, 2, 0), "strides": (1, 3)},
    {"padding": (2,), "dilation": (2,)},
    {},
]


def depthwise(height: int, width: int, **attrs: Any) -> PrimFunc:
    return convolution("conv2d", (2, 3, height, width), (3, 1, 3, 3), groups=3, **attrs)


def stays_in_planes(function: PrimFunc) -> bool:
    """Whether the loops of `function` call no micro-kernel, also none that transposes."""
    return not any(isinstance(s, TensorIntrinsic) for s in statements(schedule(function).body))


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t.vector_bits))
@pytest.mark.parametrize("attrs", ATTRS)
@pytest.mark.parametrize("extents", [(7, 67), (62, 65), (150, 80)])
def test_planes_are_convolved_where_they_are(
    extents: tuple[int, int], attrs: dict[str, Any], target: Target
) -> None:
    data, weight = numbers(2, 3, *extents), numbers(3, 1, 3, 3, seed=1)
    function = depthwise(*extents, **attrs)
    expected = defined("conv2d", data, weight, groups=3, **attrs)

    actual = computed(function, (data, weight), expected.shape, target)

    assert stays_in_planes(function)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("extents", "stride"), [((9, 14), 1), ((8, 8), 1), ((14, 24), 2)])
def test_windows_of_few_taps_are_convolved_in_short_lines(
    extents: tuple[int, int], stride: int
) -> None:
    data, weight = numbers(2, 3, *extents), numbers(3, 1, 3, 3, seed=1)
    function = depthwise(*extents, padding=(1,), strides=(stride,))
    expected = defined("conv2d", data, weight, groups=3, padding=(1,), strides=(stride,))

    actual = computed(function, (data, weight), expected.shape)

    assert stays_in_planes(function)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def test_short_lines_and_large_windows_are_left_to_vectors_of_channels() -> None:
    large = convolution("conv2d", (1, 3, 70, 70), (3, 1, 9, 9), groups=3)
    of_many_taps = convolution("conv2d", (1, 3, 60, 16), (3, 1, 5, 5), groups=3)

    assert not stays_in_planes(depthwise(60, 9))
    assert not stays_in_planes(depthwise(60, 20, strides=(2,)))
    assert not stays_in_planes(of_many_taps)
    assert not stays_in_planes(large)


def test_zeros_of_the_padding_are_multiplied_with_weights_that_are_not_finite() -> None:
    data, weight = numbers(2, 3, 8, 30), numbers(3, 1, 3, 3, seed=1)
    weight[1, 0, 0, 1], weight[2, 0, 2, 2] = np.inf, np.nan
    with np.errstate(invalid="ignore"):
        expected = defined("conv2d", data, weight, groups=3, padding=(1,))

    actual = computed(depthwise(8, 30, padding=(1,)), (data, weight), expected.shape)

    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def test_the_loops_mean_what_is_compiled() -> None:
    assert_same_results(depthwise(9, 23, padding=(1,), strides=(2, 1)))
