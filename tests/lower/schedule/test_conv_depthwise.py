"""Convolutions of each channel by itself compute what their definition says, at every edge."""

from typing import Any

import numpy as np
import pytest

from tests.lower.schedule.test_conv import LAST, assert_same, both_layouts, convolution, numbers
from tests.support.scheduled import assert_same_results


@pytest.mark.parametrize("channels", [3, 16, 40])
@pytest.mark.parametrize("attrs", [{}, {"strides": (2,)}, {"dilation": (2,), "padding": (2,)}])
def test_each_channel_by_itself(channels: int, attrs: dict[str, Any]) -> None:
    given = {"padding": (1,), **attrs}
    both_layouts((2, channels, 7, 9), (channels, 1, 3, 3), groups=channels, **given)
    both_layouts((1, channels, 9, 9), (channels, 1, 9, 9), groups=channels, padding=(4,))
    both_layouts((2, channels, 7, 9), (2 * channels, 1, 3, 3), groups=channels, **given)


@pytest.mark.parametrize("extents", [(1, 1), (2, 9), (5, 95), (9, 97)])
@pytest.mark.parametrize("channels", [15, 64, 65])
@pytest.mark.parametrize(("size", "stride", "padding"), [(3, 2, 1), (5, 1, 2), (4, 3, 3)])
def test_each_channel_by_itself_around_the_sizes_of_tiles(
    extents: tuple[int, int], channels: int, size: int, stride: int, padding: int
) -> None:
    attrs: dict[str, Any] = {"strides": (stride,), "padding": (padding,), "groups": channels}
    both_layouts((2, channels, *extents), (channels, 1, size, size), **attrs)


def test_zeros_around_data_are_multiplied_with_weights_that_are_not_finite() -> None:
    data, weight = numbers(1, 5, 4, 20), numbers(20, 1, 3, 3, seed=1)
    weight[3, 0, 0, 1], weight[7, 0, 2, 2] = np.inf, np.nan
    last = np.ascontiguousarray(weight.transpose(2, 3, 1, 0))

    assert_same("conv2d", data, last, None, padding=(1,), groups=20, **LAST)


def test_the_loops_mean_what_is_compiled() -> None:
    attrs: dict[str, Any] = {"strides": (2, 1), "padding": (1,), "groups": 6}

    assert_same_results(convolution("conv2d", (2, 6, 5, 7), (6, 1, 3, 3), **attrs))
