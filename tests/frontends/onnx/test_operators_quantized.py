"""Quantised operators of ONNX: bit for bit those of its evaluator, with sizes of run time."""

from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from tests.support.onnx_models import Array, model, node, value
from tests.support.onnx_nodes import check, floats, integers, refusal, run

DTYPES = ["int8", "uint8", "int16", "uint16"]


def scales(*shape: int) -> Array:
    return np.random.default_rng(3).uniform(0.005, 0.1, shape).astype(np.float32)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (3,)])
def test_numbers_are_rounded_and_limited(dtype: str, shape: tuple[int, ...]) -> None:
    x = np.linspace(-200, 200, 2 * 3 * 50, dtype=np.float32).reshape(2, 3, 50)

    check("QuantizeLinear", x, scales(*shape) * 10, integers(dtype, *shape), atol=0, rtol=0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_integers_become_numbers(dtype: str, axis: int) -> None:
    x = integers(dtype, 3, 3, 3)

    check("DequantizeLinear", x, scales(3), integers(dtype, 3, seed=1), axis=axis, atol=0)
    check("DequantizeLinear", x, scales(), atol=0)


def test_int32_needs_no_zero_point() -> None:
    x = integers("int32", 4, 5)

    check("DequantizeLinear", x, scales(), atol=0)
    check("DequantizeLinear", x, scales(), np.zeros((), np.int32), atol=0, opset=21)


@pytest.mark.parametrize("axis", [0, 1])
def test_blocks_have_scales_of_their_own(axis: int) -> None:
    shape = [6, 6]
    shape[axis] = 3
    x, scale, zero = floats(6, 6), scales(*shape), integers("uint8", *shape)

    check("QuantizeLinear", x, scale, zero, axis=axis, block_size=2, atol=0)
    check("DequantizeLinear", integers("uint8", 6, 6), scale, zero, axis=axis, block_size=2, atol=0)


def test_the_last_block_may_be_shorter() -> None:
    x, scale = floats(2, 5), scales(2, 3)

    result = run("QuantizeLinear", x, scale, axis=1, block_size=2, output_dtype=3)

    each = np.repeat(scale, 2, axis=1)[:, :5]
    expected = np.clip(np.rint(x / each), -128, 127).astype(np.int8)
    np.testing.assert_array_equal(result, expected, strict=True)


def test_results_may_be_of_another_precision() -> None:
    x, scale = floats(4, 5), scales(5)

    check("DequantizeLinear", integers("int8", 4, 5), scale, output_dtype=10, atol=0)
    check("QuantizeLinear", x * 100, scale, precision=11, output_dtype=5, atol=0)
    check("QuantizeLinear", integers("int32", 4, 5) % 99, scale, output_dtype=5, atol=0)


@pytest.mark.parametrize("x", [floats(3, 7), floats(3, 7) + 9, floats(3, 7) - 9, np.zeros((2, 2))])
def test_bytes_are_chosen_when_the_numbers_are_known(x: Array) -> None:
    check("DynamicQuantizeLinear", x.astype(np.float32), outputs=("y", "scale", "zero"), atol=0)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("rows", [0, 1, 37])
def test_products_are_exact(dtype: str, rows: int) -> None:
    a, b = integers(dtype, rows, 300), integers("int8", 300, 19)
    none = np.zeros((), dtype)

    check("MatMulInteger", a, b, none + 3, np.full((), -5, np.int8), atol=0, rtol=0)
    check("MatMulInteger", a, b, None, integers("int8", 19), atol=0, rtol=0)
    check("MatMulInteger", a, b, atol=0, rtol=0)


def test_rows_have_zero_points_of_their_own() -> None:
    a, b, zeros = integers("uint8", 4, 8), integers("uint8", 8, 3), integers("uint8", 4)

    result = run("MatMulInteger", a, b, zeros)

    expected = (a.astype(np.int32) - zeros[:, None]) @ b.astype(np.int32)
    np.testing.assert_array_equal(result, expected, strict=True)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_scaled_products_are_rounded_as_the_reference_does(dtype: str) -> None:
    a, b = integers(dtype, 2, 5, 40), integers(dtype, 2, 40, 6)
    zero = integers(dtype, 3, 1)
    operands = (a, scales(), zero[0, 0], b, scales(6), zero[1, 0], scales() * 200, zero[2, 0])

    check("QLinearMatMul", *(np.asarray(o) for o in operands), atol=0, rtol=0)


CONVOLUTIONS: list[dict[str, Any]] = [
    {},
    {"pads": [1, 2, 0, 1], "strides": [2, 1]},
    {"dilations": [1, 2], "auto_pad": "VALID"},
    {"group": 2},
]


@pytest.mark.parametrize("attrs", CONVOLUTIONS)
def test_scaled_convolutions_are_exact(attrs: dict[str, Any]) -> None:
    x, w = integers("uint8", 2, 4, 9, 8), integers("uint8", 6, 4 // attrs.get("group", 1), 3, 3)
    shapes = {0: ("n", 4, "h", "w"), 1: w.shape, 3: w.shape}
    zeros, bias = integers("uint8", 6), np.arange(6, dtype=np.int32) * 1000
    zero = np.asarray(zeros[0])

    check("ConvInteger", x, w, zero, shapes={0: shapes[0], 1: w.shape}, atol=0, rtol=0, **attrs)
    operands = (x, scales(), zero, w, scales(6), zeros, scales() * 900, zero, bias)
    check("QLinearConv", *operands, shapes={0: shapes[0], 3: w.shape}, atol=0, rtol=0, **attrs)


def test_weights_stay_as_they_are_stored() -> None:
    """What a quantised model reads is its own operator, which rules know."""
    w = integers("int8", 64, 32)
    given = model(
        [node("DequantizeLinear", "w scale zero", "v", axis=1), node("MatMul", "x v", "y")],
        [value("x", ["n", 64])],
        [value("y", ["n", 32])],
        {"w": w, "scale": scales(32), "zero": np.zeros(32, np.int8)},
    )

    imported = rx.from_onnx(given)

    assert "R.dequantize(" in imported.script()
    x = floats(3, 64)
    machine = rx.VirtualMachine(rx.build(rx.optimize(imported)))
    np.testing.assert_allclose(machine["main"](x), x @ (w * scales(32)), rtol=1e-4, atol=1e-3)


def test_refusals_say_why() -> None:
    x = floats(4, 4)

    assert (
        refusal("QuantizeLinear", x, scales(), np.zeros((), np.int8), output_dtype=2)
        == "its output_dtype is uint8, its zero point int8"
    )
    assert (
        refusal("QuantizeLinear", x, scales(), output_dtype=22)
        == "tensors of int4 are not supported"
    )
    assert (
        refusal("DequantizeLinear", integers("int8", 4, 4), scales(2, 2, 2), block_size=2)
        == "its scales have rank 3, need 2"
    )
