"""Weights of imported quantized models: read as they are stored, their scale after the product."""

from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph import ir
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, Tuple, Var
from relax_egraph.ir.walk import constants_of
from tests.support.scheduled import N

Array = np.ndarray[Any, Any]

DEPTH, COLUMNS = 64, 200


def quantized(dtype: str, *shape: int) -> Array:
    limits = np.iinfo(dtype)
    return np.random.default_rng(sum(shape)).integers(limits.min, limits.max + 1, shape, dtype)


def scales(*shape: int) -> Array:
    return np.random.default_rng(7).uniform(0.01, 0.1, shape).astype(np.float32)


def dequantized(q: Array, scale: Array, zero: Array, axis: int) -> Array:
    shape = [-1 if k == axis % q.ndim else 1 for k in range(q.ndim)]
    return (q.astype(np.int64) - zero.reshape(shape)) * scale.astype(np.float64).reshape(shape)


def module(
    q: Array, scale: Array, zero: Array, axis: int, *, transposed: bool = False, rows: Dim = N
) -> rx.IRModule:
    """``x @ dequantize(q)``, or its transpose."""
    x = Var("x", ir.tensor((rows, q.shape[1 if transposed else 0]), "float32"))
    bb = ir.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            operands = map(ir.const, (q, scale, zero))
            w = bb.emit(ir.call("dequantize", *operands, axis=axis))
            w = bb.emit(ir.call("permute_dims", w)) if transposed else w
            out = bb.emit_output(ir.call("matmul", x, w))
        bb.emit_func_output(out)
    return bb.get()


def dtypes_of(module: rx.IRModule) -> dict[str, int]:
    """How many elements are in constants of each dtype."""
    found: dict[str, int] = {}
    arrays = {id(c.data): c.data for _, f in module.relax_functions() for c in constants_of(f)}
    for array in arrays.values():
        found[array.dtype.name] = found.get(array.dtype.name, 0) + array.size
    return found


def run(module: rx.IRModule, x: Array, threads: int = 1) -> Array:
    return rx.VirtualMachine(rx.build(module), num_threads=threads)["main"](x)


def assert_near(actual: Array, x: Array, w: Array) -> None:
    """``x @ w``, within the rounding of a sum of so many products."""
    exact = x.astype(np.float64) @ w
    size = np.abs(x).astype(np.float64) @ np.abs(w)
    assert (np.abs(actual - exact) <= 2e-6 * size + 1e-30).all()


ZERO, MIDDLE = np.int8(0), np.uint8(128)
CASES: dict[str, tuple[str, Array, Array, str]] = {
    "a number": ("int8", scales(), np.asarray(ZERO), "int8"),
    "along columns": ("int8", scales(COLUMNS), np.asarray(ZERO), "int8"),
    "zeros along columns": ("int8", scales(COLUMNS), np.zeros(COLUMNS, np.int8), "int8"),
    "a byte around 128": ("uint8", scales(COLUMNS), np.asarray(MIDDLE), "int8"),
    "bytes around 128": ("uint8", scales(COLUMNS), np.full(COLUMNS, MIDDLE), "int8"),
    "a byte around 77": ("uint8", scales(), np.asarray(np.uint8(77)), "bfloat16"),
    "a byte from 0 on": ("uint8", scales(), np.asarray(np.uint8(0)), "bfloat16"),
    "beside zero": ("int8", scales(), np.asarray(np.int8(-3)), "bfloat16"),
    "zeros that differ": ("int8", scales(COLUMNS), quantized("int8", COLUMNS), "bfloat16"),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("transposed", [False, True])
def test_the_weight_is_read_as_it_is_stored(case: str, transposed: bool) -> None:
    dtype, scale, zero, stored = CASES[case]
    q = quantized(dtype, *((COLUMNS, DEPTH) if transposed else (DEPTH, COLUMNS)))
    axis = 0 if transposed else 1

    best = rx.optimize(module(q, scale, zero, axis, transposed=transposed), hints={"n": 1})

    found = dtypes_of(best)
    assert found[stored] == q.size
    assert sum(found.values()) <= q.size + COLUMNS
    w = dequantized(q, scale, zero, axis)
    for n in (0, 1, 2, 7, 100):
        x = np.random.default_rng(n).standard_normal((n, DEPTH)).astype(np.float32)
        one, two = (run(best, x, threads) for threads in (1, 2))
        assert_near(one, x, w.T if transposed else w)
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("zero", [-128, 127])
def test_the_farthest_zero_points_lose_nothing(zero: int) -> None:
    q = np.arange(-128, 128).astype(np.int8).reshape(1, -1)
    one = np.asarray(np.float32(1))

    best = rx.optimize(module(q, one, np.asarray(np.int8(zero)), 1), hints={"n": 1})

    x = np.ones((1, 1), np.float32)
    np.testing.assert_array_equal(run(best, x)[0], np.arange(-128, 128) - zero)


def test_a_scale_along_the_sum_is_no_scale_of_the_product() -> None:
    q, scale = quantized("int8", DEPTH, DEPTH), scales(DEPTH)
    best = rx.optimize(module(q, scale, np.asarray(ZERO), 0), hints={"n": 1})

    x = np.random.default_rng(0).standard_normal((3, DEPTH)).astype(np.float32)

    assert_near(run(best, x), x, dequantized(q, scale, np.asarray(ZERO), 0))


def test_products_of_one_input_are_merged() -> None:
    weights = [(quantized("int8", DEPTH, c), scales(c)) for c in (64, 32, 16)]
    x = Var("x", ir.tensor((1, DEPTH), "float32"))
    bb = ir.BlockBuilder()

    def product(q: Array, scale: Array) -> Expr:
        operands = map(ir.const, (q, scale, ZERO))
        w = bb.emit(ir.call("dequantize", *operands, axis=1))
        return bb.emit(ir.call("nn.relu", bb.emit(ir.call("matmul", x, w))))

    with bb.function("main", [x]):
        with bb.dataflow():
            parts = tuple(product(*w) for w in weights)
            out = bb.emit_output(ir.call("concat", Tuple(parts), axis=1))
        bb.emit_func_output(out)

    best = rx.optimize(bb.get())

    assert dtypes_of(best) == {"int8": DEPTH * 112, "float32": 112}
    given = np.random.default_rng(0).standard_normal((1, DEPTH)).astype(np.float32)
    w = np.concatenate([q * s.astype(np.float64) for q, s in weights], axis=1)
    np.testing.assert_allclose(run(best, given), np.maximum(given @ w, 0), rtol=1e-4, atol=1e-4)


def test_weights_without_a_tolerance_lose_nothing_more() -> None:
    """What is int8 in the program is; what is float32 stays."""
    q = quantized("int8", DEPTH, COLUMNS)

    report = rx.explain(module(q, scales(), np.asarray(ZERO), 1, rows=1))

    assert report.weights == ()
    assert report.rules["matmul-by-scaled-whole"] >= 1
