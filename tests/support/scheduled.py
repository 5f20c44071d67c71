"""Comparison of schedules with their original functions, for the tests of all anchors."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from relax_egraph.ir import dims
from relax_egraph.lower.intrinsics.gemm import GEMM_TILES
from relax_egraph.lower.intrinsics.sliding import TAPS, name_of
from relax_egraph.lower.intrinsics.transpose import TRANSPOSES
from relax_egraph.lower.schedule import schedule, schedule_with
from relax_egraph.lower.schedule.index import dim_of
from relax_egraph.lower.schedule.packed import Panels
from relax_egraph.tir.expr import Buffer
from relax_egraph.tir.interpret import MicroKernel, interpret
from relax_egraph.tir.rewrite import statements
from relax_egraph.tir.stmt import For, PrimFunc

Array = np.ndarray[Any, Any]

N, M, K = dims.symbol("n"), dims.symbol("m"), dims.symbol("k")


def gemm_tile(
    a: Array,
    b: Array,
    c: Array,
    a_row: int,
    a_step: int,
    b_step: int,
    b_strip: int,
    c_row: int,
    rows: int,
    columns: int,
    depth: int,
    adds: int,
    ahead: int,
) -> None:
    """The reference of the micro-kernel ``gemm_tile``."""
    places = _in_strips(b, columns, b_strip)
    for i in range(rows):
        line = c[i * c_row : i * c_row + columns]
        if not adds:
            line[...] = 0
        for k in range(depth):
            line += a[i * a_row + k * a_step] * b[k * b_step + places]


def _in_strips(b: Array, columns: int, distance: int) -> Array:
    """The offset of each column of a right operand in strips of a cache line."""
    strip = 64 // b.itemsize
    j = np.arange(columns)
    return j // strip * distance + j % strip


def dot_tile(
    a: Array,
    b: Array,
    c: Array,
    a_row: int,
    b_row: int,
    b_head: int,
    c_row: int,
    heads: int,
    rows: int,
    columns: int,
    depth: int,
) -> None:
    """The reference of the micro-kernel ``dot_tile``."""
    for h, i, j in np.ndindex(heads, rows, columns):
        r, right = h * rows + i, b[j * b_row + h * b_head :]
        c[r * c_row + j] = a[r * a_row : r * a_row + depth] @ right[:depth]


def axpy_tile(
    a: Array,
    b: Array,
    c: Array,
    a_row: int,
    b_row: int,
    b_head: int,
    c_row: int,
    heads: int,
    rows: int,
    columns: int,
    depth: int,
    adds: int,
) -> None:
    """The reference of the micro-kernel ``axpy_tile``."""
    for h, i in np.ndindex(heads, rows):
        r = h * rows + i
        line = c[r * c_row : r * c_row + columns]
        if not adds:
            line[...] = 0
        for k in range(depth):
            line += a[r * a_row + k] * b[k * b_row + h * b_head :][:columns]


def softmax_tile(
    x: Array,
    first: Array,
    end: Array,
    top: Array,
    total: Array,
    shrink: Array,
    x_row: int,
    rows: int,
    columns: int,
) -> None:
    """The reference of the micro-kernel ``softmax_tile``, for finite scores."""
    for i in range(rows):
        line, old = x[i * x_row : i * x_row + columns], top[i]
        seen = line[first[i] : end[i]]
        top[i] = max([old, *seen])
        level = 0 if top[i] == -np.inf else top[i]
        powers = np.exp2(seen - level)
        line[...] = 0
        line[first[i] : end[i]] = powers
        shrink[i] = np.exp2(old - level)
        total[i] = total[i] * shrink[i] + powers.sum()


def transpose(a: Array, b: Array, a_row: int, b_row: int, rows: int, columns: int) -> None:
    """The reference of the micro-kernels that transpose a block."""
    for i in range(rows):
        for j in range(columns):
            b[j * b_row + i] = a[i * a_row + j]


def window_tile(
    a: Array,
    b: Array,
    c: Array,
    a_row: int,
    a_line: int,
    a_tap: int,
    b_step: int,
    b_strip: int,
    c_row: int,
    rows: int,
    columns: int,
    lines: int,
    taps: int,
    depth: int,
    adds: int,
) -> None:
    """The reference of the micro-kernel ``window_tile``."""
    places = _in_strips(b, columns, b_strip)
    for i in range(rows):
        line = c[i * c_row : i * c_row + columns]
        if not adds:
            line[...] = 0
        for n, (step, tap, k) in enumerate(np.ndindex(lines, taps, depth)):
            value = a[i * a_row + step * a_line + tap * a_tap + k]
            line += value * b[n * b_step + places]


def plane_tile(
    a: Array,
    b: Array,
    c: Array,
    a_row: int,
    b_plane: int,
    b_line: int,
    b_tap: int,
    c_row: int,
    rows: int,
    columns: int,
    planes: int,
    lines: int,
    taps: int,
) -> None:
    """The reference of the micro-kernel ``plane_tile``."""
    for i in range(rows):
        row = c[i * c_row : i * c_row + columns]
        row[...] = 0
        for n, (plane, line, tap) in enumerate(np.ndindex(planes, lines, taps)):
            start = plane * b_plane + line * b_line + tap * b_tap
            row += a[i * a_row + n] * b[start : start + columns]


def depthwise_tile(
    a: Array,
    b: Array,
    c: Array,
    a_row: int,
    a_line: int,
    a_tap: int,
    b_line: int,
    b_tap: int,
    c_row: int,
    rows: int,
    columns: int,
    lines: int,
    taps: int,
    adds: int,
) -> None:
    """The reference of the micro-kernel ``depthwise_tile``."""
    for i in range(rows):
        line = c[i * c_row : i * c_row + columns]
        if not adds:
            line[...] = 0
        for step, tap in np.ndindex(lines, taps):
            seen, weight = i * a_row + step * a_line + tap * a_tap, step * b_line + tap * b_tap
            line += a[seen : seen + columns] * b[weight : weight + columns]


def sliding_tile(
    taps: int,
    a: Array,
    b: Array,
    c: Array,
    a_row: int,
    a_line: int,
    b_line: int,
    b_tap: int,
    c_row: int,
    rows: int,
    columns: int,
    lines: int,
) -> None:
    """The reference of the micro-kernel ``sliding_tile`` for lines of `taps`."""
    sizes = (rows, columns, lines, taps, 0)
    depthwise_tile(a, b, c, a_row, a_line, a_row, b_line, b_tap, c_row, *sizes)


MICRO_KERNELS: Mapping[str, MicroKernel] = {
    **dict.fromkeys(GEMM_TILES, gemm_tile),
    "dot_tile": dot_tile,
    "axpy_tile": axpy_tile,
    "softmax_tile": softmax_tile,
    "plane_tile": plane_tile,
    "window_tile": window_tile,
    "depthwise_tile": depthwise_tile,
    **{name_of(taps): partial(sliding_tile, taps) for taps in TAPS},
    **dict.fromkeys(TRANSPOSES, transpose),
}
"""The implementation of each tensor intrinsic for interpreted functions."""


def arrays(buffers: Sequence[Buffer], symbols: Mapping[str, int]) -> list[Array]:
    """Samples for `buffers`, small integers unless they are floats."""
    random = np.random.default_rng(0)
    samples: list[Array] = []
    for b in buffers:
        shape = [dims.evaluate(d, symbols) for d in b.shape]
        values = (
            random.uniform(-2, 2, shape) if "float" in b.dtype else random.integers(0, 4, shape)
        )
        samples.append(values.astype(b.dtype))
    return samples


def assert_same_results(function: PrimFunc, **symbols: int) -> None:
    """Check that the scheduled function computes the same as `function`, for these sizes."""
    inputs = arrays(function.inputs, symbols)
    expected = interpret(function, inputs, symbols)

    actual = interpret(schedule(function), inputs, symbols, MICRO_KERNELS)

    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-4, atol=1e-5)


def packed_right(function: PrimFunc) -> tuple[PrimFunc, Panels]:
    """The schedule for a constant right operand, and its packed form."""
    scheduled = schedule_with(function, {1})
    (prepared,) = scheduled.prepared
    assert prepared.sources == (function.inputs[1],)
    assert isinstance(prepared.recipe, Panels)
    return scheduled.function, prepared.recipe


def loops_of(function: PrimFunc) -> list[tuple[str, str]]:
    """The loops of `function`, in order of the text: kind and extent."""
    loops = [s for s in statements(function.body) if isinstance(s, For)]
    return [(loop.kind, written(loop)) for loop in loops]


def written(loop: For) -> str:
    """The extent in script syntax; ``...`` if it depends on another loop."""
    extent = dim_of(loop.extent)
    return "..." if extent is None else dims.text(extent)
