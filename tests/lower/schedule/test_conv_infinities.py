"""Infinities and NaN in convolutions: what each result depends on, and nothing else, decides."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build, parse
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import Attr
from relax_egraph.ir.op import OPS
from tests.lower.schedule.test_conv import LAST, Array, computed, convolution, numbers

SPECIAL = np.array([np.inf, -np.inf, np.nan], np.float32)


def with_specials(x: Array, count: int = 9) -> Array:
    """`x` with infinities and NaN in place of `count` of its elements."""
    changed = x.copy()
    places = np.random.default_rng(x.size).choice(x.size, count, replace=False)
    changed.flat[places] = np.resize(SPECIAL, count)
    return changed


def results(name: str, data: Array, weight: Array, **attrs: Any) -> tuple[Array, Array]:
    """What the machine computes, and what the definition says."""
    expected = np.asarray(apply_op(OPS[f"nn.{name}"], (data, weight), attrs))
    function = convolution(name, data.shape, weight.shape, **attrs)
    return computed(function, (data, weight), expected.shape), expected


def last(x: Array) -> Array:
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))


@pytest.mark.parametrize(
    ("name", "data", "weight", "attrs"),
    [
        ("conv2d", (2, 8, 12, 13), (20, 2, 3, 3), {"groups": 4, "padding": (1,)}),
        ("conv2d", (1, 8, 12, 13), (16, 4, 3, 2), {"groups": 2, "dilation": (2, 2)}),
        ("conv2d", (2, 8, 5, 4), (8, 1, 3, 3), {"groups": 8, "strides": (2, 2), "padding": (1,)}),
        ("conv2d", (2, 64, 7, 7), (64, 4, 1, 1), {"groups": 16}),
        ("conv2d", (1, 6, 9, 9), (12, 3, 1, 1), {"groups": 2}),
        ("conv1d", (2, 8, 40), (12, 4, 5), {"groups": 2, "padding": (2,)}),
        ("conv3d", (1, 4, 5, 9, 9), (12, 2, 2, 3, 3), {"groups": 2, "padding": (1,)}),
        ("conv2d", (1, 3, 12, 17), (24, 3, 3, 3), {"padding": (1,)}),
        ("conv2d", (1, 70, 9, 9), (5, 70, 2, 3), {}),
        ("conv2d", (1, 6, 7, 8), (12, 1, 3, 3), {"groups": 6, "padding": (1,)}),
        ("conv2d_transpose", (1, 6, 7, 8), (6, 4, 3, 3), {"strides": (2, 2), "padding": (1,)}),
        ("conv2d_transpose", (1, 6, 7, 8), (6, 2, 3, 3), {"groups": 2}),
    ],
)
@pytest.mark.parametrize("channels_last", [False, True])
def test_results_are_those_of_the_definition(
    name: str,
    data: tuple[int, ...],
    weight: tuple[int, ...],
    attrs: dict[str, Attr],
    *,
    channels_last: bool,
) -> None:
    x, w = with_specials(numbers(*data)), numbers(*weight, seed=1)
    if not name.endswith("transpose"):
        w.flat[-1] = np.inf
    if channels_last:
        x = last(x)
        attrs = {**attrs, "data_layout": {3: "NWC", 4: "NHWC", 5: "NDHWC"}[x.ndim]}

    actual, expected = results(name, x, w, **attrs)

    assert np.isfinite(expected).any()
    assert np.isinf(expected).any()
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


def test_an_infinite_weight_may_make_edges_of_a_transposed_convolution_nan() -> None:
    x, w = numbers(1, 6, 7, 8), numbers(6, 4, 3, 3, seed=1)
    w[2, 1, 0, 0] = np.inf

    actual, expected = results("conv2d_transpose", x, w)

    np.testing.assert_array_equal(np.isinf(actual), np.isinf(expected))
    np.testing.assert_allclose(actual[:, :, :7, :8], expected[:, :, :7, :8], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(actual[:, [0, 2, 3]], expected[:, [0, 2, 3]], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dilation", [1, 2])
def test_a_weight_of_halves_makes_only_results_nan_that_it_reaches(dilation: int) -> None:
    """Widened halves have loops of no schedule of convolutions."""
    attrs = f'strides=[3, 2], output_padding=[0, 1], dilation=[{dilation}], data_layout="NHWC"'
    module = parse(f"""
@R.function
def main(x: R.Tensor((2, 3, 3, 1), "float16"), w: R.Tensor((1, 1, 2, 2), "float16")):
    return R.nn.conv2d_transpose(x, w, {attrs}, out_layout="NHWC")
""")
    x = numbers(2, 3, 3, 1).astype(np.float16)
    w = np.array([[[[np.nan, 0.5], [-1, 2]]]], np.float16)

    actual = VirtualMachine(build(module))["main"](x, w)

    expected = np.asarray(evaluate(module, "main", x, w))
    assert np.isnan(expected).sum() == 18
    np.testing.assert_allclose(actual, expected, rtol=1e-3)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("padding", [(0,), (1,), (2, 0, 1, 1)])
def test_a_minimal_filter_may_make_an_infinity_nan_where_it_is_read(
    padding: tuple[int, ...], *, channels_last: bool
) -> None:
    x, w = with_specials(numbers(2, 16, 19, 22)), numbers(20, 16, 3, 3, seed=1)
    w[3, 5, 1, 2] = np.inf
    attrs: dict[str, Any] = {"padding": padding}
    if channels_last:
        x, w, attrs = last(x), np.moveaxis(w, (0, 1), (3, 2)).copy(), {**attrs, **LAST}

    actual, expected = results("conv2d", x, w, **attrs)

    read = np.isinf(expected)
    assert read.any()
    assert np.isfinite(expected).any()
    assert np.all(np.isnan(actual[read]) | (actual[read] == expected[read]))
    np.testing.assert_allclose(actual[~read], expected[~read], rtol=1e-4, atol=1e-4)


def test_a_filter_within_a_tolerance_keeps_an_infinity_in_its_tile() -> None:
    x, w = numbers(1, 24, 24, 32), numbers(3, 3, 32, 16, seed=1)
    x[0, 9, 13, 5] = np.inf
    expected = np.asarray(apply_op(OPS["nn.conv2d"], (x, w), {"padding": (1,), **LAST}))
    plain = convolution("conv2d", x.shape, w.shape, padding=(1,), **LAST)

    tolerant = replace(plain, attrs={**plain.attrs, "tolerance": 1e-4})
    actual = computed(tolerant, (x, w), expected.shape)

    actual[:, 8:12, 12:16] = expected[:, 8:12, 12:16] = 0
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-3)
