"""What operators compute where numpy alone does not say: edges, dtypes, exactness."""

import math
from typing import Any

import numpy as np
import pytest

from relax_egraph.errors import RunError
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.expr import Attr
from relax_egraph.ir.op import OPS

F32, F64 = np.float32, np.float64


def computed(name: str, *operands: Any, **attrs: Attr) -> Any:
    return apply_op(OPS[name], [np.asarray(o) for o in operands], attrs)


@pytest.mark.parametrize(
    ("name", "dtype", "expected"),
    [
        ("max", "float32", -np.inf),
        ("min", "float64", np.inf),
        ("max", "int8", -128),
        ("min", "uint8", 255),
        ("max", "bool", False),
        ("min", "bool", True),
        ("sum", "int32", 0),
        ("mean", "float32", np.nan),
    ],
)
def test_a_reduction_over_nothing_gives_its_identity(
    name: str, dtype: str, expected: float
) -> None:
    result = computed(name, np.zeros((2, 0), dtype), axis=1)

    np.testing.assert_array_equal(result, np.full(2, expected, dtype), strict=True)


@pytest.mark.parametrize("name", ["max", "min", "sum", "mean"])
def test_a_reduction_passes_nan_on(name: str) -> None:
    result = computed(name, np.array([1, np.nan, 2], F32))

    np.testing.assert_array_equal(result, np.array(np.nan, F32), strict=True)


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_the_greater_and_the_lesser_of_nan_and_a_number_are_nan(name: str) -> None:
    result = computed(name, np.array([np.nan, 1], F32), np.array([1, np.nan], F32))

    np.testing.assert_array_equal(result, np.full(2, np.nan, F32), strict=True)


def test_a_sum_of_float32_is_rounded_once() -> None:
    x = np.array([1e8, 1, -1e8, 1], F32)

    np.testing.assert_array_equal(computed("sum", x), np.array(2, F32), strict=True)


@pytest.mark.parametrize("name", ["sum", "mean", "prod"])
def test_a_reduction_does_not_depend_on_the_layout_in_memory(name: str) -> None:
    x = np.random.default_rng(0).standard_normal((7, 9, 11))
    turned = np.ascontiguousarray(x.transpose(2, 0, 1)).transpose(1, 2, 0)
    attrs: dict[str, Attr] = {"axis": (1, 2), "keepdims": False}

    results = [computed(name, each, **attrs) for each in (x, turned)]

    np.testing.assert_array_equal(*results)


def test_a_sum_of_integers_wraps_in_their_dtype() -> None:
    x = np.array([100, 100], np.int8)

    np.testing.assert_array_equal(computed("sum", x), np.array(-56, np.int8), strict=True)


def test_fma_of_float32_rounds_once() -> None:
    x = F32(1) + F32(2) ** -12
    exact = float(x) * float(x) - 1

    result = computed("ewise_fma", x, x, F32(-1))

    assert float(result) == float(F32(exact))
    assert float(x * x - F32(1)) != float(result)


def test_erf_is_that_of_the_c_library() -> None:
    x = np.linspace(-6, 6, 1001)

    result = computed("erf", x)

    np.testing.assert_array_equal(result, [math.erf(v) for v in x])


def test_sigmoid_of_float32_is_rounded_from_float64() -> None:
    x = np.array([-100, -1, 0, 1, 100], F32)

    result = computed("sigmoid", x)

    expected = (1 / (1 + np.exp(-x.astype(F64)))).astype(F32)
    np.testing.assert_array_equal(result, expected, strict=True)


def test_gelu_and_its_approximation_are_close() -> None:
    x = np.linspace(-5, 5, 101).astype(F32)

    np.testing.assert_allclose(computed("nn.gelu", x), computed("nn.gelu_tanh", x), atol=5e-4)


def test_softmax_does_not_overflow() -> None:
    x = np.array([[1000, 1000], [0, -1000]], F32)

    result = computed("nn.softmax", x, axis=1)

    np.testing.assert_array_equal(result, np.array([[0.5, 0.5], [1, 0]], F32), strict=True)


def test_overflow_and_division_by_zero_give_values_not_warnings() -> None:
    results = [
        computed("exp", F32(1000)),
        computed("divide", F32(1), F32(0)),
        computed("log", F32(-1)),
        computed("astype", np.array(np.nan, F32), dtype="bool"),
    ]

    np.testing.assert_array_equal(results, [np.inf, np.inf, np.nan, True])


def test_conversion_to_integers_truncates_towards_zero() -> None:
    result = computed("astype", np.array([-1.7, 1.7], F32), dtype="int32")

    np.testing.assert_array_equal(result, np.array([-1, 1], np.int32), strict=True)


def test_the_distinct_elements_come_ascending() -> None:
    result = computed("unique", np.array([[3, 1], [3, 2]]))

    np.testing.assert_array_equal(result, [1, 2, 3])


def test_the_shape_of_a_tensor_is_a_tuple_of_ints() -> None:
    assert computed("shape_of", np.zeros((2, 0, 3))) == (2, 0, 3)


def test_operands_that_do_not_fit_are_shown_as_struct_info() -> None:
    with pytest.raises(RunError) as refusal:
        apply_op(OPS["reshape"], [np.zeros((2, 3), F32), (5,)], {})

    assert str(refusal.value) == (
        'R.reshape of R.Tensor((2, 3), "float32") to (5,): 6 elements do not fill 5'
    )


def test_a_negative_extent_is_not_filled_in() -> None:
    with pytest.raises(RunError) as error:
        apply_op(OPS["reshape"], [np.zeros((2, 3), F32), (3, -1)], {})

    assert str(error.value) == (
        'R.reshape of R.Tensor((2, 3), "float32") to (3, -1): 6 elements do not fill -3'
    )


def test_an_intrinsic_is_refused() -> None:
    with pytest.raises(RunError) as refusal:
        apply_op(OPS["call_tir"], [], {})

    assert str(refusal.value) == (
        "R.call_tir calls what is outside of the graph: it has no value of its own"
    )
