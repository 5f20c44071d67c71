"""The micro-kernel ``gemm_tile``, and compiled products around it, agree with numpy."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relax_egraph.ir import dims
from relax_egraph.lower.intrinsics import INTRINSICS
from relax_egraph.lower.jit import Kernel, compile_kernels, link
from relax_egraph.lower.machine_code import assembly
from relax_egraph.lower.module_text import Module
from relax_egraph.lower.schedule import schedule
from relax_egraph.lower.target import AVX2, AVX512, Target, host, portable
from relax_egraph.tir.expr import Buffer, DimSymbol, Imm
from relax_egraph.tir.stmt import PrimFunc, TensorIntrinsic
from tests.scheduled import K, M, N
from tests.test_schedule_matmul import FUNCTIONS

Array = np.ndarray[Any, Any]

EXTENTS = (0, 1, 2, 5, 6, 7, 16, 17, 63, 64, 65, 100)

TARGETS = {
    "this processor": host(),
    "AVX2": portable("avx2", "fma"),
    "SSE2": portable(),
}


def sample(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def tile_function() -> PrimFunc:
    """All of ``c = a · b`` by one call; `c` has three columns and a row more than that."""
    a, b = Buffer("a", (N, K), "float32"), Buffer("b", (K, M), "float32")
    c = Buffer("c", (N + 1, M + 3), "float32")
    n, m, k = (DimSymbol(str(d)) for d in (N, M, K))
    zero = Imm(0, "int64")
    corner = (zero, zero)
    places = tuple((buffer, corner) for buffer in (a, b, c))
    call = TensorIntrinsic("gemm_tile", places, (k, Imm(1, "int64"), m, m + 3, n, m, k, zero))
    return PrimFunc((a, b, c), call)


def kernel(function: PrimFunc, target: Target | None = None) -> Kernel:
    return link(compile_kernels({"kernel": function}, target, INTRINSICS))["kernel"]


@pytest.fixture(scope="module", params=TARGETS)
def tile(request: pytest.FixtureRequest) -> Kernel:
    return kernel(tile_function(), TARGETS[request.param])


def run_tile(tile: Kernel, n: int, m: int, k: int) -> None:
    """Check the product, and that nothing is written beside it."""
    a, b = sample(n, k), sample(k, m)
    c = np.full((n + 1, m + 3), 7, np.float32)

    tile(a, b, c, n, k, m)

    np.testing.assert_allclose(c[:n, :m], a @ b, rtol=1e-4, atol=1e-4)
    assert (c[n:] == 7).all()
    assert (c[:, m:] == 7).all()


@pytest.mark.parametrize("n", EXTENTS)
def test_the_micro_kernel_agrees_with_numpy(tile: Kernel, n: int) -> None:
    for m in EXTENTS:
        for k in (0, 1, 2, 5, 64):
            run_tile(tile, n, m, k)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 40), st.integers(0, 140), st.integers(0, 40))
def test_the_micro_kernel_takes_every_shape(n: int, m: int, k: int) -> None:
    run_tile(_host_tile(), n, m, k)


_KEPT: list[Kernel] = []


def _host_tile() -> Kernel:
    if not _KEPT:
        _KEPT.append(kernel(tile_function()))
    return _KEPT[0]


def test_the_running_sums_stay_in_registers() -> None:
    target = Target("x86-64-v4", AVX512 | AVX2, 512)
    module = Module(target)
    INTRINSICS["gemm_tile"](module, target)

    spilled = re.findall(r".*zmm\d+.*\(%rsp\).*", assembly(str(module), target))

    assert spilled == []


# --- compiled schedules -----------------------------------------------------------------


def relu(x: Array) -> Array:
    return np.maximum(x, np.float32(0))


@pytest.mark.parametrize("n", EXTENTS)
def test_a_dense_layer_agrees_with_numpy(n: int) -> None:
    dense = kernel(schedule(FUNCTIONS["dense"]))
    for m in EXTENTS:
        for k in (0, 1, 7, 64):
            x, w, b = sample(n, k), sample(k, m), sample(m)
            out = np.full(n * m + 16, 7, np.float32)

            dense(x, w, b, out[: n * m].reshape(n, m), n, k, m)

            expected = relu(x @ w + b)
            np.testing.assert_allclose(out[: n * m].reshape(n, m), expected, rtol=1e-4, atol=1e-4)
            assert (out[n * m :] == 7).all()


def expected_of(name: str, *inputs: Array) -> tuple[Array, ...]:
    x, y, *rest = inputs
    match name:
        case "masked":
            return (x @ y * np.float32(0.5) + rest[0],)
        case "product and map":
            return (x @ y, np.exp(x @ y))
        case "transposed left":
            return (x.T @ y,)
        case "product of costly":
            return (np.exp(x) @ y,)
        case _:
            return (x @ y,)


PLAIN = [name for name in FUNCTIONS if name not in ("dense", "residual")]


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize(("n", "m", "k"), [(1, 1, 1), (7, 65, 9), (13, 130, 64), (0, 3, 4)])
def test_compiled_products_agree_with_numpy(name: str, n: int, m: int, k: int) -> None:
    function = FUNCTIONS[name]
    symbols = {"n": n, "m": m, "k": k}
    shapes = [[dims.evaluate(d, symbols) for d in b.shape] for b in function.params]
    inputs = [sample(*s) for s in shapes[: len(function.inputs)]]
    outputs = [np.zeros(s, np.float32) for s in shapes[len(function.inputs) :]]

    kernel(schedule(function))(*inputs, *outputs, *(symbols[s] for s in function.symbols))

    for actual, expected in zip(outputs, expected_of(name, *inputs), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("n", "k", "m"), [(1, 515, 1100), (50, 1030, 530), (200, 700, 770)])
def test_large_products_agree_with_numpy(n: int, k: int, m: int) -> None:
    """A single row, several pieces of the depth, several blocks of rows."""
    x, w, b = sample(n, k), sample(k, m), sample(m)
    plain, dense = np.full((2, n, m), 7, np.float32)

    kernel(schedule(FUNCTIONS["matrix"]))(x, w, plain, n, k, m)
    kernel(schedule(FUNCTIONS["dense"]))(x, w, b, dense, n, k, m)

    np.testing.assert_allclose(plain, x @ w, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(dense, relu(x @ w + b), rtol=1e-3, atol=1e-3)
