"""Micro-kernels of attention agree with numpy: ``softmax_tile``, ``dot_tile``, ``axpy_tile``."""

import re
from functools import cache
from typing import Any

import numpy as np
import pytest

from relax_egraph.ir import dims
from relax_egraph.ir.struct_info import Shape
from relax_egraph.lower.emit.module_text import IntrinsicEmitter, Module
from relax_egraph.lower.emit.target import Target, host
from relax_egraph.lower.intrinsics import INTRINSICS
from relax_egraph.lower.intrinsics.axpy import define_axpy_tile
from relax_egraph.lower.intrinsics.dots import define_dot_tile
from relax_egraph.lower.jit import Kernel, compile_kernels, link
from relax_egraph.lower.jit.machine_code import assembly
from relax_egraph.tir.expr import Buffer, DimSymbol, Imm
from relax_egraph.tir.interpret import MicroKernel
from relax_egraph.tir.stmt import PrimFunc, TensorIntrinsic
from tests.support.kernels import TARGETS, assert_untouched, guarded
from tests.support.scheduled import K, M, N, axpy_tile, dot_tile, softmax_tile

Array = np.ndarray[Any, Any]

ON_ALL = pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t.vector_bits))

HEADS = dims.symbol("h")

SIZES = [(0, 5), (1, 1), (3, 16), (15, 63), (16, 64), (17, 65), (33, 130)]


def calling(name: str, buffers: list[Buffer], written: int, *scalars: Any) -> PrimFunc:
    """A function that calls a micro-kernel on whole buffers, the last of which it writes."""
    zero = Imm(0, "int64")
    places = tuple((b, (zero,) * len(b.shape)) for b in buffers)
    return PrimFunc(tuple(buffers), TensorIntrinsic(name, places, scalars), num_outputs=written)


@cache
def softmax_kernel(target: Target) -> tuple[Kernel, PrimFunc]:
    n, m = (DimSymbol(str(d)) for d in (N, M))
    x = Buffer("x", (N, dims.add(M, 3)), "float32")
    runs = [Buffer(name, (N,), "int64") for name in ("first", "end")]
    states = [Buffer(name, (N,), "float32") for name in ("top", "total", "shrink")]
    function = calling("softmax_tile", [x, *runs, *states], 6, m + 3, n, m)
    return link(compile_kernels({"f": function}, target, INTRINSICS))["f"], function


def softmax_case(rows: int, columns: int) -> list[Array]:
    """Operands: rows that see all keys, some, none; whose first scores are -∞; with a past."""
    random = np.random.default_rng(rows + columns)
    x = (random.standard_normal((rows, columns + 3)) * 20).astype(np.float32)
    first = random.integers(0, columns + 1, rows)
    end = np.minimum(first + random.integers(0, columns + 1, rows), columns)
    first[::3], end[::3] = 0, columns
    x[::2, : columns // 2] = -np.inf
    top = np.where(random.random(rows) < 0.5, -np.inf, random.standard_normal(rows) * 20)
    total, shrink = random.random(rows), np.zeros(rows)
    return [x, first, end, *(a.astype(np.float32) for a in (top, total, shrink))]


@ON_ALL
@pytest.mark.parametrize(("rows", "columns"), SIZES)
def test_scores_become_powers_and_rows_are_brought_up_to_date(
    rows: int, columns: int, target: Target
) -> None:
    given = softmax_case(rows, columns)
    wanted = [a.copy() for a in given]
    x, *others = wanted
    reference: MicroKernel = softmax_tile
    reference(x.ravel(), *others, columns + 3, rows, columns)
    kernel, function = softmax_kernel(target)

    kernel(*given, *({"n": rows, "m": columns}[s] for s in function.symbols))

    for result, expected in zip(given, wanted, strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-38, strict=True)


@pytest.mark.parametrize("worst", [np.nan, np.inf])
def test_a_score_that_is_no_number_is_seen_in_the_total_of_its_row(worst: float) -> None:
    given = softmax_case(18, 40)
    given[0][6, 39] = worst
    kernel, function = softmax_kernel(host())

    with np.errstate(invalid="ignore"):
        kernel(*given, *({"n": 18, "m": 40}[s] for s in function.symbols))

    assert [*np.flatnonzero(np.isnan(given[4]))] == [6]


DEPTHS = [0, 1, 15, 16, 64, 100, 132]

FEW_AND_MANY = [(0, 1, 3), (1, 1, 1), (1, 1, 16), (2, 2, 7), (1, 4, 17), (3, 5, 35), (2, 1, 64)]
"""Heads, rows of each, and how many they meet: on both sides of what is taken at once."""

BOUNDS: dict[str, DimSymbol] = {str(d): DimSymbol(str(d)) for d in (N, M, K, HEADS)}


def scalars_of(function: PrimFunc, heads: int, rows: int, columns: int, depth: int) -> list[int]:
    """The symbols of a kernel, in their order."""
    return [{"h": heads, "n": rows, "m": columns, "k": depth}[s] for s in function.symbols]


@cache
def dot_kernel(target: Target) -> tuple[Kernel, PrimFunc]:
    n, m, k, h = BOUNDS.values()
    side = dims.add(dims.mul(HEADS, K), 2)
    shapes: dict[str, Shape] = {"a": (HEADS, N, K), "b": (M, side), "c": (HEADS, N, M)}
    a, b, c = (Buffer(name, shape, "float32") for name, shape in shapes.items())
    function = calling("dot_tile", [a, b, c], 1, k, h * k + 2, k, m, h, n, m, k)
    return link(compile_kernels({"f": function}, target, INTRINSICS))["f"], function


@ON_ALL
@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize(("heads", "rows", "columns"), FEW_AND_MANY)
def test_few_rows_by_many(heads: int, rows: int, columns: int, depth: int, target: Target) -> None:
    random = np.random.default_rng(depth)
    a = random.standard_normal((heads, rows, depth), np.float32)
    b = random.standard_normal((columns, heads * depth + 2), np.float32)
    c, wanted = guarded((heads, rows, columns), "float32"), np.zeros((heads, rows, columns))
    strides = (depth, heads * depth + 2, depth, columns)
    dot_tile(a.ravel(), b.ravel(), wanted.ravel(), *strides, heads, rows, columns, depth)
    kernel, function = dot_kernel(target)

    kernel(a, b, c, *scalars_of(function, heads, rows, columns, depth))

    np.testing.assert_allclose(c, wanted, rtol=1e-5, atol=1e-5)
    assert_untouched(c)


@cache
def axpy_kernel(target: Target, adds: int) -> tuple[Kernel, PrimFunc]:
    n, m, k, h = BOUNDS.values()
    side = dims.add(dims.mul(HEADS, M), 2)
    shapes: dict[str, Shape] = {"a": (HEADS, N, K), "b": (K, side), "c": (HEADS, N, M)}
    a, b, c = (Buffer(name, shape, "float32") for name, shape in shapes.items())
    scalars = (k, h * m + 2, m, m, h, n, m, k, Imm(adds, "int64"))
    function = calling("axpy_tile", [a, b, c], 1, *scalars)
    return link(compile_kernels({"f": function}, target, INTRINSICS))["f"], function


@ON_ALL
@pytest.mark.parametrize("adds", [0, 1])
@pytest.mark.parametrize("width", DEPTHS)
@pytest.mark.parametrize(("heads", "rows", "count"), FEW_AND_MANY)
def test_sums_of_many_rows(
    heads: int, rows: int, count: int, width: int, adds: int, target: Target
) -> None:
    random = np.random.default_rng(width)
    a = random.standard_normal((heads, rows, count), np.float32)
    b = random.standard_normal((count, heads * width + 2), np.float32)
    c = guarded((heads, rows, width), "float32")
    c[...] = random.standard_normal(c.shape, np.float32)
    wanted = c.astype(np.float64)
    strides = (count, heads * width + 2, width, width)
    axpy_tile(a.ravel(), b.ravel(), wanted.ravel(), *strides, heads, rows, width, count, adds)
    kernel, function = axpy_kernel(target, adds)

    kernel(a, b, c, *scalars_of(function, heads, rows, width, count))

    np.testing.assert_allclose(c, wanted, rtol=1e-5, atol=1e-5)
    assert_untouched(c)


@pytest.mark.skipif(host().vector_bits < 512, reason="needs 32 registers")
@pytest.mark.parametrize("define", [define_dot_tile, define_axpy_tile])
def test_running_sums_stay_in_registers(define: IntrinsicEmitter) -> None:
    module = Module(host())
    define(module, host())

    text = assembly(str(module), host())
    has_frame = re.search(r"movq\s+%rsp, %rbp", text)  # else LLVM keeps other things in rbp
    frame = "%rsp|%rbp" if has_frame else "%rsp"
    assert not re.search(rf"zmm\d+, \S*\(({frame})", text)
