"""Pools, scheduled and compiled, compute what their definition says, and write nothing else.

All kernels run beside pages that nobody may touch, and on lines that they cut in several ways.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from relax_egraph.ir import dims
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.op import OPS, complete_attrs
from relax_egraph.lower.intrinsics import INTRINSICS
from relax_egraph.lower.jit import compile_kernels, link
from relax_egraph.lower.legalize import LEGALIZE
from relax_egraph.lower.runtime.threads import thread_pool
from relax_egraph.lower.schedule import schedule
from relax_egraph.tir import te
from relax_egraph.tir.stmt import PrimFunc
from tests.support.guarded import guarded
from tests.support.pairwise import pairwise
from tests.support.scheduled import loops_of

Array = np.ndarray[Any, Any]

N, C, H, W = map(dims.symbol, "nchw")

LAST: dict[str, Any] = {"layout": "NHWC"}


def numbers(*shape: int, dtype: str = "float32") -> Array:
    random = np.random.default_rng(0)
    if dtype.startswith("float"):
        return random.uniform(-1, 1, shape).astype(dtype)
    return random.integers(0, 100, shape).astype(dtype)


def pool_of(name: str, shape: Sequence[Dim], dtype: str = "float32", **attrs: Any) -> PrimFunc:
    x = te.placeholder(tuple(shape), dtype, name="x")
    made = LEGALIZE[f"nn.{name}"](x, **complete_attrs(OPS[f"nn.{name}"], attrs))
    assert isinstance(made, te.Tensor)
    return te.create_prim_func(x, made)


def computed(
    function: PrimFunc, arrays: Sequence[Array], out: Array, anchor: str = "pool", threads: int = 1
) -> Array:
    """The output of the scheduled function, whose arrays lie beside guarded pages."""
    scheduled = schedule(function)
    assert scheduled.attrs["schedule"] == anchor
    compiled = compile_kernels({"kernel": scheduled}, None, INTRINSICS)
    linked = link(compiled, 0 if threads == 1 else thread_pool(threads))
    kernel = guarded("kernel", linked["kernel"], compiled.kernels["kernel"])
    known = {
        str(dim): extent
        for buffer, array in zip(function.inputs, arrays, strict=True)
        for dim, extent in zip(buffer.shape, array.shape, strict=True)
    }
    result = np.zeros_like(out)
    kernel(*arrays, result, *(known[name] for name in scheduled.symbols))
    return result


def assert_same(
    name: str, data: Array, shape: Sequence[Dim] = (), anchor: str = "pool", **attrs: Any
) -> None:
    """Of a maximum, to the bit."""
    expected = np.asarray(apply_op(OPS[f"nn.{name}"], (data,), attrs))
    function = pool_of(name, shape or data.shape, data.dtype.name, **attrs)
    actual = computed(function, [data], expected, anchor)
    if name.startswith("max"):
        np.testing.assert_array_equal(actual, expected)
    else:
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def both_layouts(name: str, data: Array, **attrs: Any) -> None:
    """Of ``NCHW`` and ``NHWC``, of known extents and of unknown ones."""
    assert_same(name, data, **attrs)
    assert_same(name, data, (N, C, H, W), **attrs)
    last = np.ascontiguousarray(data.transpose(0, 2, 3, 1))
    assert_same(name, last, **attrs, **LAST)
    assert_same(name, last, (N, H, W, C), **attrs, **LAST)


@pytest.mark.parametrize("name", ["max_pool2d", "avg_pool2d"])
@pytest.mark.parametrize(("size", "stride"), [(1, 2), (2, 1), (3, 1), (3, 2), (3, 5), (5, 3)])
def test_windows_and_strides(name: str, size: int, stride: int) -> None:
    attrs: dict[str, Any] = {"pool_size": (size,), "strides": (stride,)}
    both_layouts(name, numbers(2, 3, 11, 37), padding=(size // 2,), **attrs)
    both_layouts(name, numbers(1, 17, 11, 13), **attrs)


@pytest.mark.parametrize(
    ("name", "dilation", "padding", "ceil_mode"),
    pairwise(
        ["max_pool2d", "avg_pool2d"],
        [1, 2, 3],
        [(0,), (1,), (0, 1, 2, 3), (3, 2, 1, 0), (4,)],
        [False, True],
    ),
)
def test_dilations_and_paddings(
    name: str, dilation: int, padding: tuple[int, ...], ceil_mode: bool
) -> None:
    attrs: dict[str, Any] = {
        "pool_size": (2, 3),
        "strides": (2, 1),
        "dilation": (dilation,),
        "padding": padding,
        "ceil_mode": ceil_mode,
        "count_include_pad": dilation == 2,
    }
    assert_same(name, numbers(1, 5, 9, 12), (N, C, H, W), **attrs)
    assert_same(name, numbers(1, 9, 12, 5), **attrs, **LAST)


@pytest.mark.parametrize("extent", [1, 2, 15, 16, 17, 31, 33, 64])
@pytest.mark.parametrize("stride", [1, 2])
def test_extents_around_those_of_vectors(extent: int, stride: int) -> None:
    attrs: dict[str, Any] = {"pool_size": (3,), "strides": (stride,), "padding": (1,)}
    assert_same("max_pool2d", numbers(1, 2, 3, extent), **attrs)
    assert_same("max_pool2d", numbers(1, 2, 3, extent), (N, C, H, W), **attrs)
    assert_same("max_pool2d", numbers(1, 3, 2, extent), **attrs, **LAST)
    assert_same("max_pool2d", numbers(1, 3, 2, extent), (N, H, W, C), **attrs, **LAST)


@pytest.mark.parametrize("shape", [(0, 3, 5, 5), (2, 0, 5, 5)])
def test_data_without_elements(shape: tuple[int, ...]) -> None:
    both_layouts("max_pool2d", numbers(*shape), pool_size=(3,), padding=(1,))


@pytest.mark.parametrize("channels", [0, 3])
def test_results_without_elements(channels: int) -> None:
    attrs: dict[str, Any] = {"strides": (2,), "padding": (0, 1), "dilation": (2,)}
    assert_same("max_pool1d", numbers(1, 0, channels), layout="NWC", ceil_mode=True, **attrs)


@pytest.mark.parametrize("name", ["max_pool1d", "avg_pool1d"])
@pytest.mark.parametrize("stride", [1, 2, 4])
def test_lines_that_are_cut(name: str, stride: int) -> None:
    attrs: dict[str, Any] = {"pool_size": (4,), "strides": (stride,), "padding": (2, 1)}
    data = numbers(1, 2, 9001)
    assert_same(name, data, **attrs)
    assert_same(name, data, (N, C, W), **attrs)
    last = np.ascontiguousarray(data.transpose(0, 2, 1))
    assert_same(name, last, (N, W, C), layout="NWC", **attrs)
    assert_same(name, numbers(1, 40, 300), layout="NWC", **attrs)


@pytest.mark.parametrize("name", ["max_pool2d", "avg_pool2d"])
@pytest.mark.parametrize("stride", [1, 2, 17])
def test_windows_of_many_elements(name: str, stride: int) -> None:
    attrs: dict[str, Any] = {"pool_size": (20, 18), "strides": (stride,), "padding": (9,)}
    both_layouts(name, numbers(1, 3, 21, 40), **attrs)


@pytest.mark.parametrize("layout", ["NCDHW", "NDHWC"])
@pytest.mark.parametrize("name", ["max_pool3d", "avg_pool3d"])
@pytest.mark.parametrize("stride", [1, 2])
def test_three_axes(name: str, layout: str, stride: int) -> None:
    for size in (3, 5):
        attrs: dict[str, Any] = {"pool_size": (size,), "strides": (stride,), "padding": (1,)}
        assert_same(name, numbers(2, 5, 6, 7, 8), layout=layout, **attrs)


@pytest.mark.parametrize("dtype", ["float64", "float16", "int8", "uint8", "int32", "int64", "bool"])
@pytest.mark.parametrize("stride", [1, 2])
def test_other_types(dtype: str, stride: int) -> None:
    attrs: dict[str, Any] = {"pool_size": (3,), "strides": (stride,), "padding": (1,)}
    both_layouts("max_pool2d", numbers(1, 3, 9, 70, dtype=dtype), **attrs)


def test_nan_comes_out_wherever_it_is_seen() -> None:
    data = numbers(1, 2, 9, 20)
    data[0, 0, (0, 4, 8), (0, 7, 19)] = np.nan
    both_layouts("max_pool2d", data, pool_size=(3,), strides=(2,), padding=(1,))


def test_a_window_that_sees_nothing_gives_the_least_value_or_0() -> None:
    attrs: dict[str, Any] = {"pool_size": (2,), "padding": (3,)}
    both_layouts("max_pool2d", numbers(1, 3, 4, 5), **attrs)
    both_layouts("avg_pool2d", numbers(1, 3, 4, 5), **attrs)


def test_parts_of_one_size() -> None:
    for shape, layout in (((1, 3, 14, 28), "NCHW"), ((1, 14, 28, 3), "NHWC")):
        assert_same("adaptive_avg_pool2d", numbers(*shape), output_size=(7,), layout=layout)


def test_what_comes_before_and_what_follows_is_in_the_same_loops() -> None:
    shape = (2, 3, 9, 11)
    x, bias = te.placeholder(shape, name="x"), te.placeholder((3,), name="bias")
    more = te.placeholder((2, 3, 5, 6), name="more")
    positive = te.compute(shape, lambda *i: te.maximum(x[i], 0), "positive")
    attrs: dict[str, Any] = {"pool_size": (3,), "strides": (2,), "padding": (1,)}
    top = LEGALIZE["nn.max_pool2d"](positive, **complete_attrs(OPS["nn.max_pool2d"], attrs))
    assert isinstance(top, te.Tensor)
    out = te.compute((2, 3, 5, 6), lambda *i: top[i] * bias[i[1]] + more[i], "out")
    arrays = [numbers(*shape), numbers(3), numbers(2, 3, 5, 6)]
    pooled = np.asarray(apply_op(OPS["nn.max_pool2d"], (np.maximum(arrays[0], 0),), attrs))
    expected = pooled * arrays[1][:, None, None] + arrays[2]

    actual = computed(te.create_prim_func(x, bias, more, out), arrays, expected)

    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6)


def test_sums_of_powers() -> None:
    x = te.placeholder((3, 9, H), name="x")
    taps = te.reduce_axis(2), te.reduce_axis(3)

    def squares(c: Any, i: Any, j: Any) -> Any:
        at = c, i * 2 + taps[0], j + taps[1] * 2
        return te.sum(x[at] * x[at], [*taps])

    total = te.compute((3, 4, dims.sub(H, 4)), squares, "total")
    norm = te.compute(total.shape, lambda *i: te.sqrt(total[i]), "norm")
    data = numbers(3, 9, 21)
    seen = np.lib.stride_tricks.sliding_window_view(data, (2, 5), (1, 2))[:, ::2, :, :, ::2]
    expected = np.sqrt((seen**2).sum((-1, -2)))

    actual = computed(te.create_prim_func(x, norm), [data], expected)

    np.testing.assert_allclose(actual, expected, rtol=1e-5)


@pytest.mark.skipif(not thread_pool(2), reason="kernels have no threads here")
def test_threads_share_the_lines() -> None:
    attrs: dict[str, Any] = {"pool_size": (3,), "strides": (2,), "padding": (1,)}
    data = numbers(2, 16, 57, 60)
    expected = np.asarray(apply_op(OPS["nn.max_pool2d"], (data,), attrs))

    actual = computed(pool_of("max_pool2d", (N, C, H, W), **attrs), [data], expected, threads=2)

    np.testing.assert_array_equal(actual, expected)


def test_a_line_is_combined_across_and_then_along() -> None:
    attrs: dict[str, Any] = {"pool_size": (3,), "strides": (2,)}

    scheduled = schedule(pool_of("max_pool2d", (N, 8, 15, 33), **attrs))

    assert loops_of(scheduled) == [
        *[("parallel", "n"), ("parallel", "8"), ("parallel", "7")],
        *[("vectorized", "33"), ("vectorized", "16"), ("vectorized", "16")],
    ]


@pytest.mark.parametrize(
    ("columns", "padding", "extents"),
    [(35, 0, ["35", "30", "32", "17"]), (112, 1, ["1", "112", "112", "16", "64", "56"])],
)
def test_what_only_the_last_vector_reads_is_cleared(
    columns: int, padding: int, extents: list[str]
) -> None:
    """It would be what lies on the stack; of subnormal numbers a mean takes twice as long."""
    attrs: dict[str, Any] = {"pool_size": (3,), "strides": (2,), "padding": (padding,)}

    scheduled = schedule(pool_of("avg_pool2d", (N, 8, 15, columns), **attrs))

    assert [e for kind, e in loops_of(scheduled) if kind == "vectorized"][
        -len(extents) :
    ] == extents


@pytest.mark.parametrize(
    ("name", "shape", "attrs", "anchor"),
    [
        ("avg_pool2d", (2, 3, 7, 7), {"pool_size": (7,)}, "rows"),
        ("adaptive_avg_pool2d", (2, 3, 7, 5), {"output_size": (1,)}, "rows"),
        ("max_pool2d", (2, 3, 7, 5), {"pool_size": (2,), "out_layout": "NHWC"}, "rows"),
        ("adaptive_avg_pool2d", (2, 3, 7, 5), {"output_size": (3,)}, "rows"),
    ],
)
def test_what_is_no_pool_of_windows_in_order(
    name: str, shape: tuple[int, ...], attrs: dict[str, Any], anchor: str
) -> None:
    assert_same(name, numbers(*shape), (), anchor, **attrs)
