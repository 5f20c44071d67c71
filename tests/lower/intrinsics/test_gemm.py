"""The micro-kernel ``gemm_tile``, and compiled products around it, agree with numpy."""

import re
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relax_egraph.ir import dims
from relax_egraph.lower.emit.machine import scheduling_for
from relax_egraph.lower.emit.module_text import Module
from relax_egraph.lower.emit.target import AVX2, AVX512, Target, host, portable
from relax_egraph.lower.intrinsics import INTRINSICS
from relax_egraph.lower.intrinsics.gemm import GEMM_TILES, name_of
from relax_egraph.lower.intrinsics.row import ELEMENTS, dtype_of, strip_columns
from relax_egraph.lower.jit import Kernel, compile_kernels, link
from relax_egraph.lower.jit.machine_code import assembly
from relax_egraph.lower.jit.processors import processor
from relax_egraph.lower.schedule import schedule
from relax_egraph.tir.expr import Buffer, DimSymbol, Imm
from relax_egraph.tir.stmt import PrimFunc, TensorIntrinsic
from tests.lower.schedule.test_matmul import FUNCTIONS
from tests.support.guarded import PAGE, place
from tests.support.kernels import TARGETS
from tests.support.scheduled import K, M, N

Array = np.ndarray[Any, Any]

EXTENTS = (0, 1, 2, 5, 6, 7, 15, 16, 17, 63, 64, 65, 127)

ALL_TARGETS = {
    "AVX-512": Target("x86-64-v4", AVX512 | AVX2, 512, "x86_64"),
    "AVX2": portable("avx2", "fma"),
    "SSE2": portable(),
}


def sample(*shape: int, dtype: str = "float32") -> Array:
    """Normal floats, or integers of all bits."""
    rng = np.random.default_rng(sum(shape))
    if dtype == "int32":
        return rng.integers(-(1 << 31), 1 << 31, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def tile_function(beside: int, *, transposed: bool, dtype: str) -> PrimFunc:
    """``c[:n, :m] = a · b``, or ``+=``, by one call; rows of `b` and `c` are `beside` longer.

    `b` is of `dtype`.  What would come after `b` is fetched ahead, though nothing is there.
    """
    number = dtype_of(dtype)
    a = Buffer("a", (K, N) if transposed else (N, K), number)
    b, c = Buffer("b", (K, M + beside), dtype), Buffer("c", (N, M + beside), number)
    n, m, k = (DimSymbol(str(d)) for d in (N, M, K))
    zero, one, adds = Imm(0, "int64"), Imm(1, "int64"), DimSymbol("adds")
    places = tuple((buffer, (zero, zero)) for buffer in (a, b, c))
    of_a = (one, n) if transposed else (k, one)
    line = Imm(strip_columns(dtype), "int64")
    scalars = (*of_a, m + beside, line, m + beside, n, m, k, adds, k * m + 1)
    call = TensorIntrinsic(name_of(dtype), places, scalars)
    return PrimFunc((a, b, c), call, scalars=("adds",))


def kernel(function: PrimFunc, target: Target | None = None) -> Kernel:
    return link(compile_kernels({"kernel": function}, target, INTRINSICS))["kernel"]


FORMS = {
    "packed": (0, False, "float32"),
    "strided": (3, False, "float32"),
    "transposed": (0, True, "float32"),
    "bfloat16": (3, False, "bfloat16"),
    "int8": (3, False, "int8"),
    "float64": (3, False, "float64"),
    "int32": (0, True, "int32"),
}


@pytest.fixture(scope="module", params=TARGETS)
def target(request: pytest.FixtureRequest) -> Target:
    return request.param


@pytest.fixture(scope="module", params=FORMS)
def tile(target: Target, request: pytest.FixtureRequest) -> "Tile":
    return Tile(target, *FORMS[request.param])


class Tile:
    """A compiled `tile_function`, run on arrays that end where no memory is."""

    def __init__(self, target: Target, beside: int, transposed: bool, dtype: str) -> None:
        self.function = tile_function(beside, transposed=transposed, dtype=dtype)
        self.kernel = kernel(self.function, target)
        self.beside, self.transposed, self.dtype = beside, transposed, dtype

    def check(self, n: int, m: int, k: int, adds: int = 0) -> None:
        """Run it, and check the product and that nothing is written beside it."""
        number = dtype_of(self.dtype)
        a, c = sample(n, k, dtype=number), sample(n, m + self.beside, dtype=number)
        b = (10 * sample(k, m + self.beside, dtype=number)).astype(self.dtype)
        given = [np.ascontiguousarray(a.T) if self.transposed else a, b, c]
        places = [place(i, x.nbytes // PAGE + 1) for i, x in enumerate(given)]
        held = [p.put(x, at_end=True) for p, x in zip(places, given, strict=True)]
        symbols = {"n": n, "m": m, "k": k, "adds": adds}

        self.kernel(*held, *(symbols[s] for s in self.function.symbols))

        expected = a @ b[:, :m].astype(number) + adds * c[:, :m]
        near = {"float32": 1e-3, "float64": 1e-12, "int32": 0.0}[number]
        np.testing.assert_allclose(held[2][:, :m], expected, rtol=near / 10, atol=near)
        assert (held[2][:, m:] == c[:, m:]).all()
        assert all(p.is_untouched(x) for p, x in zip(places, held, strict=True))


@pytest.mark.parametrize("n", EXTENTS)
def test_the_micro_kernel_agrees_with_numpy(tile: Tile, n: int) -> None:
    for m in EXTENTS:
        for k in (0, 1, 2, 5, 64):
            tile.check(n, m, k, adds=k % 2)


def test_a_deep_product_agrees_with_numpy(tile: Tile) -> None:
    for n, m in ((1, 130), (2, 10), (13, 100)):
        tile.check(n, m, 768, adds=1)


@pytest.mark.parametrize("dtype", ELEMENTS)
def test_strips_of_a_cache_line_are_read_by_every_processor(target: Target, dtype: str) -> None:
    strips, width, number = dims.symbol("s"), strip_columns(dtype), dtype_of(dtype)
    a, c = Buffer("a", (N, K), number), Buffer("c", (N, M), number)
    b = Buffer("b", (strips, K, width), dtype)
    n, m, k = (DimSymbol(str(d)) for d in (N, M, K))
    zero, one = Imm(0, "int64"), Imm(1, "int64")
    places = ((a, (zero, zero)), (b, (zero, zero, zero)), (c, (zero, zero)))
    scalars = (k, one, Imm(width, "int64"), k * width, m, n, m, k, zero, k * 64)
    function = PrimFunc((a, b, c), TensorIntrinsic(name_of(dtype), places, scalars))
    run = kernel(function, target)
    for rows, depth, count in ((1, 9, 2), (5, 3, 1), (17, 70, 3), (40, 33, 6)):
        x = sample(rows, depth, dtype=number)
        w = (10 * sample(count, depth, width, dtype=number)).astype(dtype)
        for columns in {count * width, count * width - 3, (count - 1) * width + 1}:
            symbols = {"n": rows, "m": columns, "k": depth, "s": count}
            y = np.empty((rows, columns), number)

            run(x, w, y, *(symbols[s] for s in function.symbols))

            matrix = w.astype(number).transpose(1, 0, 2).reshape(depth, -1)
            np.testing.assert_allclose(y, x @ matrix[:, :columns], rtol=1e-4, atol=1e-3)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 40), st.integers(0, 140), st.integers(0, 40), st.integers(0, 1))
def test_the_micro_kernel_takes_every_shape(n: int, m: int, k: int, adds: int) -> None:
    _host_tile().check(n, m, k, adds)


@cache
def _host_tile() -> Tile:
    return Tile(host(), *FORMS["strided"])


SPILLED = {
    ("AVX2", "gemm_tile_int8"): {"gemm_8x1", "gemm_4x1", "gemm_1x1"},
    ("AVX2", "gemm_tile_int32"): {"gemm_6x2"},
    ("SSE2", "gemm_tile_int32"): {"gemm_5x2", "gemm_6x2"},
}
"""Strips of a few bytes, which AVX2 has no masks for; products that are added in two steps."""


@pytest.mark.parametrize("tile", GEMM_TILES)
def test_micro_kernels_of_aarch64_multiply_by_a_lane(tile: str) -> None:
    target = processor("aarch64")
    module = Module(target)
    INTRINSICS[tile](module, target)

    text = assembly(str(module), target)

    instruction = "mla" if tile == "gemm_tile_int32" else "fmla"
    assert re.search(rf"\t{instruction}\tv\d+\.\w+, v\d+\.\w+, v\d+\.[sd]\[\d\]", text)


@pytest.mark.parametrize("tile", GEMM_TILES)
@pytest.mark.parametrize("name", ALL_TARGETS)
def test_no_vector_is_kept_on_the_stack(name: str, tile: str) -> None:
    target = ALL_TARGETS[name]
    module = Module(target)
    INTRINSICS[tile](module, target)

    text = assembly(str(module), target)

    kernels = dict(re.findall(r"(?ms)^(gemm_\w+):$(.*?)^\.Lfunc_end", text))
    spilled = {
        kernel
        for kernel, body in kernels.items()
        if re.search(r"[xyz]mm\d+.*\(%rsp|\(%rsp.*[xyz]mm\d+", body)
    }
    assert any(kernel.startswith("gemm_6x") for kernel in kernels)
    assert spilled == SPILLED.get((name, tile), set())


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


def test_few_rows_of_a_large_product_agree_with_numpy(target: Target) -> None:
    with scheduling_for(target):
        dense = kernel(schedule(FUNCTIONS["dense"]), target)
    x, w, b = sample(4, 515), sample(515, 1100), sample(1100)
    for rows in (1, 2, 3, 4):
        y = np.full((rows, 1100), 7, np.float32)

        dense(x[:rows], w, b, y, rows, 515, 1100)

        np.testing.assert_allclose(y, relu(x[:rows] @ w + b), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("n", "k", "m"), [(1, 515, 1100), (50, 1030, 530), (200, 700, 770), (193, 1030, 530)]
)
def test_large_products_agree_with_numpy(n: int, k: int, m: int) -> None:
    """A single row, several pieces of the depth, several blocks of rows."""
    x, w, b = sample(n, k), sample(k, m), sample(m)
    plain, dense = np.full((2, n, m), 7, np.float32)

    kernel(schedule(FUNCTIONS["matrix"]))(x, w, plain, n, k, m)
    kernel(schedule(FUNCTIONS["dense"]))(x, w, b, dense, n, k, m)

    np.testing.assert_allclose(plain, x @ w, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(dense, relu(x @ w + b), rtol=1e-3, atol=1e-3)
