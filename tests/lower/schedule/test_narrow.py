"""Products whose right operand is stored in fewer bits: every schedule reads it so."""

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from relax_egraph.ir.dims import Dim
from relax_egraph.lower.intrinsics import INTRINSICS
from relax_egraph.lower.jit import compile_kernels, link
from relax_egraph.lower.pack import pack
from relax_egraph.lower.runtime.threads import thread_pool
from relax_egraph.lower.schedule import schedule
from relax_egraph.tir import te
from relax_egraph.tir.expr import TirVar
from relax_egraph.tir.rewrite import statements
from relax_egraph.tir.stmt import PrimFunc, TensorIntrinsic
from relax_egraph.tir.tensor import Reduction
from tests.support.scheduled import K, M, N, assert_same_results, packed_right

Array = np.ndarray[Any, Any]

DTYPES = ("int8", "bfloat16")


def scaled(
    dtype: str, x_shape: Sequence[Dim], w_shape: Sequence[Dim], *, transposed: bool = False
) -> PrimFunc:
    """``out[…, i, j] = Σₖ x[…, i, k] · float32(w[…, k, j]) · s[j]``, `w` perhaps `transposed`.

    The weight is widened by a stage of its own, as an operator is.
    """
    x = te.placeholder(tuple(x_shape), "float32", "x")
    w = te.placeholder(tuple(w_shape), dtype, "w")
    columns = w_shape[-2 if transposed else -1]
    s = te.placeholder((columns,), "float32", "s")
    wide = te.compute(tuple(w_shape), lambda *i: te.cast(w[i], "float32"), "wide")
    k = te.reduce_axis(x_shape[-1])

    def total(*i: TirVar) -> Reduction:
        *head, row, column = i
        batch = tuple(head) if len(w_shape) > 2 else ()
        at = (*batch, column, k) if transposed else (*batch, k, column)
        return te.sum(x[(*head, row, k)] * wide[at], k)

    shape = (*x_shape[:-1], columns)
    y = te.compute(shape, total, "y")
    return te.create_prim_func(x, w, s, te.compute(shape, lambda *i: y[i] * s[i[-1]], "out"))


def kernel(function: PrimFunc, threads: int = 1) -> Any:
    return link(compile_kernels({"kernel": function}, None, INTRINSICS), thread_pool(threads))[
        "kernel"
    ]


def weight(shape: Sequence[int], dtype: str) -> Array:
    return np.random.default_rng(sum(shape)).integers(-127, 128, shape).astype(dtype)


def sample(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def assert_near(actual: Array, x: Array, w: Array, s: Array) -> None:
    """Within the rounding of a sum of so many products."""
    exact = x.astype(np.float64) @ w.astype(np.float64) * s
    size = np.abs(x).astype(np.float64) @ np.abs(w.astype(np.float64)) * np.abs(s)
    assert (np.abs(actual - exact) <= 1e-6 * size + 1e-30).all()


def calls(function: PrimFunc) -> set[str]:
    return {s.name for s in statements(function.body) if isinstance(s, TensorIntrinsic)}


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_product_reads_the_weight_as_it_is_stored(dtype: str) -> None:
    function = schedule(scaled(dtype, (N, K), (K, M)))

    assert function.attrs["schedule"] == "matmul"
    assert f"gemm_tile_{dtype}" in calls(function)
    assert function.allocs == ()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("sizes", [(1, 3, 2), (2, 17, 5), (9, 66, 3), (0, 3, 2), (3, 2, 0)])
def test_the_schedule_means_what_the_stages_do(
    dtype: str, transposed: bool, sizes: tuple[int, int, int]
) -> None:
    n, m, k = sizes
    function = scaled(dtype, (N, K), (M, K) if transposed else (K, M), transposed=transposed)

    assert_same_results(function, n=n, m=m, k=k)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("sizes", [(1, 300, 600), (7, 65, 33), (200, 700, 770), (1, 1, 1)])
def test_weights_that_are_no_constants_are_widened_too(
    dtype: str, transposed: bool, sizes: tuple[int, int, int]
) -> None:
    """Where they are, copied to panels, or streamed for a single row."""
    n, m, k = sizes
    x, w, s = sample(n, k), weight((m, k) if transposed else (k, m), dtype), sample(m)
    function = scaled(dtype, (N, K), (M, K) if transposed else (K, M), transposed=transposed)
    out = np.empty((n, m), np.float32)

    run = kernel(schedule(function))
    symbols = {"n": n, "m": m, "k": k}
    run(x, w, s, out, *(symbols[name] for name in function.symbols))

    assert_near(out, x, w.T if transposed else w, s)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("depth", "columns"), [(1, 2), (5, 17), (64, 64), (130, 200), (1100, 70)])
def test_constant_weights_are_packed_as_they_are_stored(
    dtype: str, transposed: bool, depth: int, columns: int
) -> None:
    shape = (columns, depth) if transposed else (depth, columns)
    function = scaled(dtype, (N, depth), shape, transposed=transposed)
    scheduled, panels = packed_right(function)
    w, s = weight(shape, dtype), sample(columns)
    packed = pack(w, panels)
    assert packed.dtype == w.dtype
    assert packed.nbytes == w.itemsize * depth * panels.padded

    one, two = kernel(scheduled), kernel(scheduled, threads=2)
    for n in (0, 1, 2, 6, 7, 97):
        x = sample(n, depth)
        out, other = np.empty((2, n, columns), np.float32)
        one(x, packed, s, out, n)
        two(x, packed, s, other, n)
        assert_near(out, x, w.T if transposed else w, s)
        np.testing.assert_array_equal(out, other)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_matrix_for_each_of_a_batch(dtype: str) -> None:
    function = scaled(dtype, (3, N, 40), (3, 40, 70))
    scheduled, panels = packed_right(function)
    w, s, x = weight((3, 40, 70), dtype), sample(70), sample(3, 5, 40)
    plain, packed = np.empty((2, 3, 5, 70), np.float32)

    kernel(schedule(function))(x, w, s, plain, 5)
    kernel(scheduled)(x, pack(w, panels), s, packed, 5)

    assert_near(plain, x, w, s)
    assert_near(packed, x, w, s)


def test_a_left_operand_is_widened_before() -> None:
    """Only the right one is read as it is stored."""
    x = te.placeholder((N, 30), "int8", "x")
    w = te.placeholder((30, 40), "float32", "w")
    wide = te.compute((N, 30), lambda *i: te.cast(x[i], "float32"), "wide")
    k = te.reduce_axis(30)
    y = te.compute((N, 40), lambda i, j: te.sum(wide[i, k] * w[k, j], k), "y")
    function = te.create_prim_func(x, w, y)

    assert calls(schedule(function)) == {"gemm_tile"}
    assert_same_results(function, n=3)


def test_what_is_widened_and_needed_itself_is_made_once() -> None:
    x = te.placeholder((N, 30), "float32", "x")
    w = te.placeholder((30, 40), "int8", "w")
    wide = te.compute((30, 40), lambda *i: te.cast(w[i], "float32"), "wide")
    k = te.reduce_axis(30)
    y = te.compute((N, 40), lambda i, j: te.sum(x[i, k] * wide[k, j], k), "y")
    function = te.create_prim_func(x, w, wide, y)

    assert calls(schedule(function)) == {"gemm_tile"}
    assert_same_results(function, n=3)


def test_numbers_of_bfloat16_are_widened_exactly() -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    w = bits[bits & 0x7F80 != 0x7F80].view(ml_dtypes.bfloat16).reshape(1, -1)  # finite ones
    function = scaled("bfloat16", (1, 1), w.shape)
    scheduled, panels = packed_right(function)
    out = np.empty(w.shape, np.float32)

    run = kernel(scheduled)
    run(np.ones((1, 1), np.float32), pack(w, panels), np.ones(w.shape[1], np.float32), out)

    np.testing.assert_array_equal(out, w.astype(np.float32))
