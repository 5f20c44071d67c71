"""Quantisation: rounding, saturation, and what is refused."""

from typing import Any

import numpy as np
import pytest

from relax_egraph.errors import RunError
from relax_egraph.ir import dims
from relax_egraph.ir.expr import Attr, Expr
from relax_egraph.ir.struct_info import tensor
from tests.support.applied import both, computed, f32, inferred, of, refusal

n = dims.symbol("n")


def i8(*values: int) -> Any:
    return np.array(values[0] if len(values) == 1 else values, np.int8)


def test_halves_are_rounded_to_even() -> None:
    x = f32(0.5, 1.5, 2.5, -0.5, -1.5, 0.75)

    for result in both("quantize", x, f32(1), i8(0)):
        np.testing.assert_array_equal(result, i8(0, 2, 2, 0, -2, 1), strict=True)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_what_is_too_great_or_too_small_saturates(dtype: str) -> None:
    x = f32(1e30, np.inf, -1e30, -np.inf, 3e5, -3e5, np.nan)
    limits = np.iinfo(dtype)
    low, high = limits.min, limits.max

    for result in both("quantize", x, f32(1), i8(7), out_dtype=dtype):
        expected = np.array([high, high, low, low, high, low, 7], dtype)
        np.testing.assert_array_equal(result, expected, strict=True)


def test_a_vector_of_parameters_is_along_the_axis() -> None:
    x = f32([[1, 2], [3, 4]])

    for result in both("quantize", x, f32(1, 0.5), i8(0, 10), axis=-2):
        np.testing.assert_array_equal(result, np.array([[1, 2], [16, 18]], np.int8), strict=True)


def test_a_zero_point_may_be_wide() -> None:
    x, zero = f32(-1e9, -16777216, 0), np.array(16777217, np.int32)

    for result in both("quantize", x, f32(1), zero):
        np.testing.assert_array_equal(result, i8(-128, 1, 127), strict=True)
    for result in both("dequantize", i8(1, -128), f32(0.5), np.array(-128, np.int32)):
        np.testing.assert_array_equal(result, f32(64.5, 0), strict=True)


def test_dequantisation_takes_a_difference_that_does_not_wrap() -> None:
    x = np.array([[-128, 127], [0, -128]], np.int8)

    for result in both("dequantize", x, f32([0.5]), i8(127, -128), axis=1):
        expected = f32([[-127.5, 127.5], [-63.5, 0]])
        np.testing.assert_array_equal(result, expected, strict=True)


def test_a_number_that_quantisation_gives_comes_back_the_same() -> None:
    q = np.arange(-128, 128).astype(np.int8)
    scale, zero_point = f32(0.1), i8(3)

    for x in both("dequantize", q, scale, zero_point):
        for result in both("quantize", x, scale, zero_point):
            np.testing.assert_array_equal(result, q, strict=True)


X, S, Z = of(2, 3), of(), of(dtype="int8")
SAID = 'R.quantize of R.Tensor((2, 3), "float32"), '

REFUSED: list[tuple[str, tuple[Expr, ...], dict[str, Attr], str]] = [
    (
        "quantize",
        (X, of(2), Z),
        {},
        f'{SAID}R.Tensor((2,), "float32"), R.Tensor((), "int8"): '
        "scale has shape (2,), needs (), (1,) or (3,)",
    ),
    (
        "quantize",
        (X, S, of(2, 3, dtype="int8")),
        {},
        f'{SAID}R.Tensor((), "float32"), R.Tensor((2, 3), "int8"): '
        "zero_point has rank 2, needs 0 or 1",
    ),
    (
        "quantize",
        (X, S, of(dtype="int64")),
        {},
        f'{SAID}R.Tensor((), "float32"), R.Tensor((), "int64"): '
        'the dtype of zero_point is "int64", needs one of int8, uint8, int16, uint16, int32',
    ),
    (
        "quantize",
        (X, S, Z),
        {"out_dtype": "float32"},
        f'{SAID}R.Tensor((), "float32"), R.Tensor((), "int8"): '
        'out_dtype is "float32", needs one of int8, uint8, int16, uint16',
    ),
    (
        "quantize",
        (X, of(dtype="float64"), Z),
        {},
        f'{SAID}R.Tensor((), "float64"), R.Tensor((), "int8"): needs operands of one dtype',
    ),
    (
        "quantize",
        (X, S, Z),
        {"axis": 2},
        'R.quantize of R.Tensor((2, 3), "float32"): axis 2 is outside of rank 2',
    ),
    (
        "dequantize",
        (X, S, Z),
        {},
        'R.dequantize of R.Tensor((2, 3), "float32"), R.Tensor((), "float32"), '
        'R.Tensor((), "int8"): '
        'the dtype of data is "float32", needs one of int8, uint8, int16, uint16, int32',
    ),
]


@pytest.mark.parametrize(("name", "args", "attrs", "message"), REFUSED)
def test_ill_typed_quantisation_is_refused(
    name: str, args: tuple[Expr, ...], attrs: dict[str, Attr], message: str
) -> None:
    assert refusal(name, *args, **attrs) == message


def test_quantised_tensors_have_the_shape_of_the_data() -> None:
    info = inferred("quantize", of(n, 3), of(3), of(3, dtype="int8"), out_dtype="uint8")

    assert info == tensor((n, 3), "uint8")


def test_a_parameter_that_does_not_fit_is_refused_at_run_time() -> None:
    with pytest.raises(RunError) as refused:
        computed("quantize", f32([[1, 2]]), f32(1, 2, 3), i8(0))

    assert str(refused.value) == (
        'R.quantize of R.Tensor((1, 2), "float32"), R.Tensor((3,), "float32"), '
        'R.Tensor((), "int8"): scale has shape (3,), needs (), (1,) or (2,)'
    )
