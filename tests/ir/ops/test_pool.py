"""Pools: known values, the edges of their windows, and what they refuse."""

import numpy as np
import pytest

from relax_egraph.errors import IllTyped
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.dims import Dim, minimum, symbol
from relax_egraph.ir.expr import Attr, Call, Var
from relax_egraph.ir.op import OPS, infer
from relax_egraph.ir.struct_info import TensorStructInfo, tensor
from tests.support.ops.case import Array

n = symbol("n")

SQUARE = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
LARGE = np.arange(1, 26, dtype=np.float32).reshape(1, 1, 5, 5)


def computed(name: str, data: Array, **attrs: Attr) -> Array:
    return np.asarray(apply_op(OPS[name], (data,), attrs))


def of(*shape: Dim, dtype: str = "float32") -> Var:
    return Var("x", tensor(shape, dtype))


def test_with_ceil_mode_the_last_window_sticks_out_and_counts_only_what_is_there() -> None:
    attrs: dict[str, Attr] = {"pool_size": 3, "strides": 2, "ceil_mode": True}

    top = computed("nn.max_pool2d", SQUARE, **attrs)
    mean = computed("nn.avg_pool2d", SQUARE, **attrs)
    padded = computed("nn.avg_pool2d", SQUARE, count_include_pad=True, **attrs)

    np.testing.assert_array_equal(top, np.array([[[[11, 12], [15, 16]]]], np.float32), strict=True)
    np.testing.assert_array_equal(mean, np.array([[[[6, 7.5], [12, 13.5]]]], np.float32))
    np.testing.assert_array_equal(padded, mean)


def test_a_window_that_would_begin_behind_the_last_element_is_left_out() -> None:
    data = np.array([[[1.0, 2]]])

    result = computed("nn.max_pool1d", data, pool_size=1, strides=2, ceil_mode=True)

    np.testing.assert_array_equal(result, [[[1]]])


@pytest.mark.parametrize(
    ("count_include_pad", "expected"),
    [(True, [2.52, 3.6, 4.8, 4.08, 3.24]), (False, [7, 7.5, 8, 8.5, 9])],
)
def test_a_mean_counts_the_padding_if_asked_to(
    count_include_pad: bool, expected: list[float]
) -> None:
    result = computed(
        "nn.avg_pool2d", LARGE, pool_size=5, padding=(2,), count_include_pad=count_include_pad
    )

    np.testing.assert_allclose(result[0, 0, 0], expected, rtol=1e-6)


def test_dilated_windows_leave_elements_out() -> None:
    result = computed("nn.max_pool2d", -SQUARE, pool_size=2, dilation=2)

    np.testing.assert_array_equal(result[0, 0], [[-1, -2], [-5, -6]])


def test_the_means_of_one_and_three_axes_count_padding_by_default() -> None:
    data = np.ones((1, 1, 2))

    result = computed("nn.avg_pool1d", data, pool_size=2, padding=1)

    np.testing.assert_array_equal(result, [[[0.5, 1, 0.5]]])


def test_a_window_without_elements_gives_the_least_value_or_0() -> None:
    data = np.ones((1, 1, 1), np.float32)

    top = computed("nn.max_pool1d", data, padding=1)
    mean = computed("nn.avg_pool1d", data, padding=1, count_include_pad=False)

    np.testing.assert_array_equal(top, [[[-np.inf, 1, -np.inf]]])
    np.testing.assert_array_equal(mean, [[[0, 1, 0]]])


def test_a_pool_passes_nan_on() -> None:
    data = np.array([[[1, np.nan, 2, 3]]])

    np.testing.assert_array_equal(
        computed("nn.max_pool1d", data, pool_size=2), [[[np.nan, np.nan, 3]]]
    )


def test_an_adaptive_pool_covers_all_elements_with_windows_that_may_overlap() -> None:
    data = np.array([[[1.0, 2, 3, 4, 5]]])

    fewer = computed("nn.adaptive_avg_pool1d", data, output_size=3)
    more = computed("nn.adaptive_avg_pool1d", data[..., :2], output_size=3)
    same = computed("nn.adaptive_avg_pool1d", data)

    np.testing.assert_array_equal(fewer, [[[1.5, 3, 4.5]]])
    np.testing.assert_array_equal(more, [[[1, 1.5, 2]]])
    np.testing.assert_array_equal(same, data)


def test_an_adaptive_pool_of_nothing_is_nan() -> None:
    result = computed("nn.adaptive_avg_pool1d", np.zeros((1, 1, 0)), output_size=2)

    np.testing.assert_array_equal(result, [[[np.nan, np.nan]]])


def extent(name: str, **attrs: Attr) -> Dim:
    info = infer(Call(OPS[name], (of(1, 1, n),), attrs))
    assert isinstance(info, TensorStructInfo)
    assert info.dims is not None
    return info.dims[2]


def test_the_extent_of_the_result_is_a_formula_of_that_of_data() -> None:
    extents = [
        extent("nn.max_pool1d", pool_size=3, strides=2, padding=1),
        extent("nn.max_pool1d", pool_size=3, strides=2, padding=1, ceil_mode=True),
        extent("nn.max_pool1d", pool_size=1, strides=2, ceil_mode=True),
        extent("nn.adaptive_avg_pool1d", output_size=7),
        extent("nn.adaptive_avg_pool1d"),
    ]

    assert extents == [(n - 1) // 2 + 1, n // 2 + 1, minimum(n // 2 + 1, (n + 1) // 2), 7, n]


REFUSED: list[tuple[str, Var, dict[str, Attr], str]] = [
    ("nn.max_pool2d", of(1, 2, 3), {}, "needs data of rank 4"),
    (
        "nn.max_pool1d",
        of(1, 2, 3),
        {"layout": "NCHW"},
        "layout is 'NCHW', needs the letters of 'NCW'",
    ),
    ("nn.max_pool1d", of(1, 2, 3), {"pool_size": 0}, "pool_size is [0], needs values of 1 or more"),
    (
        "nn.max_pool2d",
        of(1, 2, 3, 3),
        {"strides": (1, 2, 3)},
        "strides is [1, 2, 3], needs 1 or 2 values",
    ),
    (
        "nn.avg_pool1d",
        of(1, 2, 3),
        {"pool_size": 6, "padding": 1},
        "along W the window of 6 does not fit into 5, padding included",
    ),
    ("nn.avg_pool1d", of(1, 2, 3, dtype="int8"), {}, "needs a floating-point tensor"),
    ("nn.adaptive_avg_pool1d", of(1, 2, 3, dtype="bool"), {}, "needs a floating-point tensor"),
    (
        "nn.adaptive_avg_pool2d",
        of(1, 2, 3, 3),
        {"output_size": (0,)},
        "output_size is [0], needs values of 1 or more",
    ),
]


@pytest.mark.parametrize(("name", "data", "attrs", "message"), REFUSED)
def test_what_does_not_fit_is_refused(
    name: str, data: Var, attrs: dict[str, Attr], message: str
) -> None:
    with pytest.raises(IllTyped) as refused:
        infer(Call(OPS[name], (data,), attrs))

    assert str(refused.value) == f"R.{name} of {data.struct_info}: {message}"
