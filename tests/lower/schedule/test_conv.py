"""Convolutions, scheduled and compiled, compute what their definition says, and write nothing else.

All kernels run beside pages that nobody may touch.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build
from relax_egraph.ir import call, const, dims, tensor
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.block_builder import BlockBuilder
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Attr, Expr, Var
from relax_egraph.ir.op import OPS, complete_attrs
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.intrinsics import INTRINSICS
from relax_egraph.lower.jit import compile_kernels, link
from relax_egraph.lower.legalize import LEGALIZE
from relax_egraph.lower.pipeline import lower_module
from relax_egraph.lower.schedule import schedule
from relax_egraph.tir import te
from relax_egraph.tir.expr import Buffer
from relax_egraph.tir.inline import inline_injective
from relax_egraph.tir.rewrite import statements
from relax_egraph.tir.stmt import PrimFunc, TensorIntrinsic, TirBlock
from tests.support.guarded import guarded
from tests.support.pairwise import pairwise
from tests.support.widths import WIDTHS

Array = np.ndarray[Any, Any]
Extents = tuple[Dim, ...]

N, H, W = map(dims.symbol, "nhw")

LAST: dict[str, Any] = {"data_layout": "NHWC", "kernel_layout": "HWIO"}


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def convolution(name: str, data: Extents, weight: Extents, **attrs: Attr) -> PrimFunc:
    x, w = te.placeholder(data, name="x"), te.placeholder(weight, name="w")
    out = LEGALIZE[f"nn.{name}"](x, w, **complete_attrs(OPS[f"nn.{name}"], attrs))
    assert isinstance(out, te.Tensor)
    return te.create_prim_func(x, w, out)


def computed(
    function: PrimFunc,
    arrays: Sequence[Array],
    shape: tuple[int, ...],
    target: Target | None = None,
) -> Array:
    """The output of the scheduled function, whose arrays lie beside guarded pages."""
    scheduled = schedule(function)
    compiled = compile_kernels({"kernel": scheduled}, target, INTRINSICS)
    kernel = guarded("kernel", link(compiled)["kernel"], compiled.kernels["kernel"])
    known = {
        str(dim): extent
        for buffer, array in zip(function.inputs, arrays, strict=True)
        for dim, extent in zip(buffer.shape, array.shape, strict=True)
    }
    out = np.full(shape, np.nan, np.float32)
    kernel(*arrays, out, *(known[name] for name in scheduled.symbols))
    return out


def defined(name: str, data: Array, weight: Array, **attrs: Attr) -> Array:
    """The result in float64."""
    given = (data.astype(np.float64), weight.astype(np.float64))
    return np.asarray(apply_op(OPS[f"nn.{name}"], given, attrs))


def assert_same(
    name: str,
    data: Array,
    weight: Array,
    shapes: tuple[Extents, Extents] | None = None,
    **attrs: Any,
) -> None:
    expected = defined(name, data, weight, **attrs)
    extents, sizes = shapes or (data.shape, weight.shape)
    function = convolution(name, extents, sizes, **attrs)
    actual = computed(function, (data, weight), expected.shape)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def both_layouts(data: tuple[int, ...], weight: tuple[int, ...], **attrs: Attr) -> None:
    """Of ``NCHW`` and ``OIHW``, and with channels last."""
    x, w = numbers(*data), numbers(*weight, seed=1)
    assert_same("conv2d", x, w, None, **attrs)
    last = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    assert_same(
        "conv2d", last, np.ascontiguousarray(w.transpose(2, 3, 1, 0)), None, **{**attrs, **LAST}
    )


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("channels", [(1, 1), (3, 16), (17, 5), (16, 70)])
def test_windows_and_channels_of_every_size(size: int, channels: tuple[int, int]) -> None:
    i, o = channels
    both_layouts((2, i, 9, 8), (o, i, size, size), padding=(size // 2,))


@pytest.mark.parametrize(
    ("stride", "dilation", "padding"),
    pairwise([1, 2, 3], [1, 2, 3], [(0,), (1,), (0, 1, 2, 3), (3, 2, 1, 0)]),
)
def test_strides_dilations_and_paddings(
    stride: int, dilation: int, padding: tuple[int, ...]
) -> None:
    both_layouts(
        (1, 5, 11, 9), (18, 5, 3, 2), strides=(stride, 1), dilation=(1, dilation), padding=padding
    )


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("taps", [(1, 1), (3, 3), (5, 7)])
def test_weights_that_are_packed_in_blocks(taps: tuple[int, int], groups: int) -> None:
    both_layouts((1, 19 * groups, 10, 9), (130 * groups, 19, *taps), strides=(2,), groups=groups)


@pytest.mark.parametrize("extents", [(1, 1), (2, 3), (4, 7), (8, 8), (13, 5), (6, 60)])
@pytest.mark.parametrize("padding", [(0,), (1,), (2, 0, 1, 1)])
def test_minimal_filtering(extents: tuple[int, int], padding: tuple[int, ...]) -> None:
    least = 3 - min(padding) - padding[-1]
    h, w = (max(e, least) for e in extents)
    both_layouts((3, 16, h, w), (20, 16, 3, 3), padding=padding)


@pytest.mark.parametrize("groups", [2, 4])
@pytest.mark.parametrize("size", [1, 3])
def test_groups(groups: int, size: int) -> None:
    both_layouts((2, 8, 6, 7), (20, 8 // groups, size, size), groups=groups, padding=(1,))


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_transposed_ones(stride: int, groups: int, *, last: bool) -> None:
    x, w = numbers(2, 6, 5, 4), numbers(6, 4, 3, 2, seed=1)
    attrs = {"strides": (stride, 2), "padding": (1, 0, 0, 1), "groups": groups, "dilation": (2, 1)}
    if last:
        x, attrs = np.ascontiguousarray(x.transpose(0, 2, 3, 1)), {**attrs, "data_layout": "NHWC"}
    assert_same("conv2d_transpose", x, w, None, kernel_layout="IOHW", **attrs)


@pytest.mark.parametrize("sizes", [(1, 3), (2, 2)])
@pytest.mark.parametrize(("stride", "dilation"), [(3, 2), (4, 3), (2, 2), (4, 2)])
def test_positions_of_transposed_ones_that_no_tap_reaches(
    sizes: tuple[int, int], stride: int, dilation: int
) -> None:
    x, w = numbers(1, 1, 5, 8), numbers(1, 1, *sizes, seed=1)
    attrs = {"strides": (stride, 1), "dilation": (dilation, 3), "kernel_layout": "IOHW"}

    assert_same("conv2d_transpose", x, w, None, padding=(3, 0, 0, 1), **attrs)


@pytest.mark.parametrize("extents", [(1, 1), (14, 14), (33, 31), (3, 200)])
@pytest.mark.parametrize("strides", [(2, 2), (1, 3), (2, 1)])
def test_windows_of_one_element_that_skip_places(
    extents: tuple[int, int], strides: tuple[int, int]
) -> None:
    both_layouts((3, 20, *extents), (70, 20, 1, 1), strides=strides)


@pytest.mark.parametrize("inlined", [False, True])
@pytest.mark.parametrize(
    ("extents", "strides", "padding"),
    [((8, 17), (1, 2), (1,)), ((600, 3), (526, 2), (255, 0)), ((H, W), (2, 3), (1, 0, 0, 4))],
)
def test_padding_of_windows_of_one_element_that_skip_places(
    extents: Extents, strides: tuple[int, int], padding: tuple[int, ...], *, inlined: bool
) -> None:
    x, w = te.placeholder((1, 2, *extents), name="x"), te.placeholder((1, 2, 1, 1), name="w")
    attrs: dict[str, Any] = {"strides": strides, "padding": padding}
    out = LEGALIZE["nn.conv2d"](x, w, **complete_attrs(OPS["nn.conv2d"], attrs))
    assert isinstance(out, te.Tensor)
    (result,) = inline_injective([out]) if inlined else [out]
    sizes = [d if isinstance(d, int) else 5 for d in extents]
    data, weight = numbers(1, 2, *sizes), numbers(1, 2, 1, 1, seed=1)
    expected = defined("conv2d", data, weight, **attrs)

    actual = computed(te.create_prim_func(x, w, result), (data, weight), expected.shape)

    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("attrs", [{}, {"strides": (2,)}, {"dilation": (3,)}])
@pytest.mark.parametrize("size", [1, 3])
def test_large_images_of_a_batch(size: int, attrs: dict[str, Any]) -> None:
    both_layouts((3, 17, 36, 35), (66, 17, size, size), padding=(size // 2,), **attrs)


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_other_numbers_of_axes(groups: int) -> None:
    x, w = numbers(2, 6, 19), numbers(12, 6 // groups, 4, seed=1)
    assert_same("conv1d", x, w, groups=groups, strides=(2,), padding=(1, 2))
    x, w = numbers(1, 6, 4, 5, 6), numbers(12, 6 // groups, 2, 3, 3, seed=1)
    assert_same("conv3d", x, w, groups=groups, strides=(1, 2, 1), padding=(1, 0, 1))


SYMBOLIC = [
    ((N, 16, H, W), (18, 16, 3, 3), {"padding": (1,)}),
    ((N, 3, H, W), (18, 3, 3, 3), {"padding": (1,), "strides": (2,)}),
    ((N, 8, H, W), (8, 1, 3, 3), {"padding": (1,), "groups": 8}),
    ((N, 8, H, W), (8, 4, 3, 3), {"padding": (1, 0, 2, 2), "groups": 2}),
    ((N, 24, H, W), (18, 24, 1, 1), {"strides": (2,)}),
    ((N, 24, 16, 16), (70, 24, 3, 3), {"strides": (2,), "padding": (1,)}),
    ((N, 24, 40, 40), (70, 24, 1, 1), {"strides": (2,)}),
    ((N, 20, 17, 17), (20, 20, 3, 3), {"padding": (1,)}),
]


@pytest.mark.parametrize(("extents", "sizes", "attrs"), SYMBOLIC)
@pytest.mark.parametrize("point", [(0, 3, 3), (1, 1, 1), (2, 7, 4), (1, 5, 40), (3, 14, 14)])
def test_extents_known_at_run_time(
    extents: Extents, sizes: tuple[int, ...], attrs: dict[str, Any], point: tuple[int, int, int]
) -> None:
    known = dict(zip(map(str, (N, H, W)), point, strict=True))
    data = numbers(*(dims.evaluate(d, known) for d in extents))
    weight = numbers(*sizes, seed=1)

    assert_same("conv2d", data, weight, (extents, sizes), **attrs)

    last: Extents = (extents[0], *extents[2:], extents[1])
    weight = np.ascontiguousarray(weight.transpose(2, 3, 1, 0))
    data = np.ascontiguousarray(data.transpose(0, 2, 3, 1))
    assert_same("conv2d", data, weight, (last, weight.shape), **attrs, **LAST)


@pytest.mark.parametrize(("i", "o"), [(0, 3), (3, 0), (0, 0), (0, 20)])
@pytest.mark.parametrize("groups", [1, 2])
def test_no_channels_and_no_features(i: int, o: int, groups: int) -> None:
    both_layouts((2, i * groups, 5, 5), (o * groups, i, 3, 3), groups=groups)


@pytest.mark.parametrize(("h", "w"), [(0, 3), (3, 0), (0, 0)])
def test_data_with_nothing_in_it_but_padding(h: int, w: int) -> None:
    data, weight = numbers(2, 4, h, w), numbers(5, 4, 3, 3, seed=1)

    assert_same("conv2d", data, weight, ((N, 4, H, W), weight.shape), padding=(2,))


def fused(data: Extents, weight: Extents, positions: Extents, **attrs: Attr) -> PrimFunc:
    """``max(conv(x, w) + b + r, 0)``, of channels last."""
    x, w = te.placeholder(data, name="x"), te.placeholder(weight, name="w")
    out = LEGALIZE["nn.conv2d"](x, w, **complete_attrs(OPS["nn.conv2d"], attrs))
    assert isinstance(out, te.Tensor)
    channel = out.shape.index(weight[-1] if attrs else weight[0])
    b = te.placeholder((out.shape[channel],), name="b")
    r = te.placeholder(positions, name="r")

    def value(*i: Any) -> Any:
        at = tuple(k if d != 1 else te.const(0, "int64") for k, d in zip(i, positions, strict=True))
        return te.maximum(out[i] + b[i[channel]] + r[at], 0.0)

    return te.create_prim_func(x, w, b, r, te.compute(out.shape, value, "relu"))


@pytest.mark.parametrize("channels", [4, 32])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("broadcast", [(), (1,), (2,), (1, 3)])
def test_what_follows_is_computed_on_the_tile(
    channels: int, last: bool, broadcast: tuple[int, ...]
) -> None:
    x, w, b = numbers(2, channels, 7, 10), numbers(36, channels, 3, 3, seed=1), numbers(36, seed=2)
    shape = tuple(1 if k in broadcast else d for k, d in enumerate((2, 36, 5, 8)))
    r = numbers(*shape, seed=3)
    expected = defined("conv2d", x, w) + b[:, None, None] + r
    if last:
        x, r, expected = (np.ascontiguousarray(a.transpose(0, 2, 3, 1)) for a in (x, r, expected))
        w = np.ascontiguousarray(w.transpose(2, 3, 1, 0))
    function = fused(x.shape, w.shape, r.shape, **(LAST if last else {}))

    actual = computed(function, (x, w, b, r), expected.shape)

    assert schedule(function).attrs["schedule"] == "conv"
    np.testing.assert_allclose(actual, np.maximum(expected, 0), rtol=1e-5, atol=1e-5)


def test_both_the_convolution_and_what_follows_are_results() -> None:
    x, w = te.placeholder((1, 3, 6, 6), name="x"), te.placeholder((4, 3, 3, 3), name="w")
    out = LEGALIZE["nn.conv2d"](x, w, **complete_attrs(OPS["nn.conv2d"], {}))
    assert isinstance(out, te.Tensor)
    twice = te.compute(out.shape, lambda *i: out[i] * 2.0, "twice")
    scheduled = schedule(te.create_prim_func(x, w, out, twice))
    kernel = link(compile_kernels({"kernel": scheduled}, None, INTRINSICS))["kernel"]
    data, weight = numbers(1, 3, 6, 6), numbers(4, 3, 3, 3, seed=1)
    results = [np.empty((1, 4, 4, 4), np.float32) for _ in range(2)]

    kernel(data, weight, *results)

    expected = defined("conv2d", data, weight)
    np.testing.assert_allclose(results[0], expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(results[1], 2 * expected, rtol=1e-5, atol=1e-5)


def calls(function: PrimFunc) -> list[str]:
    """The micro-kernels that the schedule calls, in order of the text."""
    scheduled = schedule(function)
    return [s.name for s in statements(scheduled.body) if isinstance(s, TensorIntrinsic)]


def test_channels_that_do_not_lie_side_by_side_are_transposed() -> None:
    first = convolution("conv2d", (1, 8, 9, 9), (72, 8, 5, 5))
    last = convolution("conv2d", (1, 9, 9, 8), (5, 5, 8, 72), **LAST)

    pack = "transpose_32"
    assert calls(first) == [pack, "transpose_32", "gemm_tile", "transpose_32"]
    assert calls(last) == ["gemm_tile"]


def test_few_features_are_multiplied_as_data_lie_whatever_is_last() -> None:
    first = convolution("conv2d", (1, 3, 20, 20), (40, 3, 5, 5), strides=(2,))

    assert calls(first) == ["transpose_32", "window_tile", "transpose_32"]


def test_places_that_windows_of_one_element_skip_are_left_out_first() -> None:
    wide = convolution("conv2d", (2, 8, 40, 40), (72, 8, 1, 1), strides=(2,))
    narrow = convolution("conv2d", (2, 8, 20, 20), (72, 8, 1, 1), strides=(2,))

    assert calls(wide) == ["gemm_tile"]
    assert calls(narrow) == ["transpose_32", "transpose_32", "gemm_tile", "transpose_32"]


def test_few_features_are_multiplied_where_data_lies() -> None:
    few = convolution("conv2d", (1, 9, 9, 8), (5, 5, 8, 40), **LAST)
    in_short_lines = convolution("conv2d", (1, 9, 7, 8), (5, 5, 8, 40), **LAST)

    assert calls(few) == ["window_tile"]
    assert calls(in_short_lines) == ["window_tile"]


def test_minimal_filtering_is_as_accurate_as_it_says() -> None:
    data, weight = numbers(1, 12, 12, 128), numbers(3, 3, 128, 64, seed=1)
    expected = defined("conv2d", data, weight, padding=(1,), **LAST)
    function = convolution("conv2d", data.shape, weight.shape, padding=(1,), **LAST)

    actual = computed(function, (data, weight), expected.shape)

    spread = np.sqrt(np.mean(expected**2))
    assert np.abs(actual - expected).max() < 2.8e-6 * spread


@pytest.mark.parametrize("size", [1, 3, 5])
def test_constant_weights_are_prepared_when_a_module_is_built(size: int) -> None:
    """Two calls of one kernel, with weights of their own."""
    x = Var("x", tensor((2, 20, 6, 6), "float32"))
    weights = [numbers(20, 20, size, size, seed=k) for k in (1, 2)]
    bb = BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            out: Expr = x
            for w in weights:
                out = bb.emit(call("nn.conv2d", out, const(w), padding=(size // 2,)))
            gv = bb.emit_output(out)
        bb.emit_func_output(gv)
    data = numbers(2, 20, 6, 6)
    once = defined("conv2d", data, weights[0], padding=(size // 2,))
    expected = defined("conv2d", once, weights[1], padding=(size // 2,))

    lowered = lower_module(bb.get())
    actual = VirtualMachine(build(bb.get()))["main"](data)

    (kernel,) = (f for f in lowered.functions.values() if isinstance(f, PrimFunc))
    assert all(b.shape != weights[0].shape for b in kernel.inputs) or size == 1
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


SHARED: list[tuple[Extents, tuple[int, ...], dict[str, Any]]] = [
    ((3, 24, 30, 30), (70, 24, 3, 3), {"padding": (1,)}),
    ((3, 24, 30, 30), (70, 24, 3, 3), {"padding": (1,), "strides": (2,)}),
    ((3, 24, 40, 40), (70, 24, 1, 1), {"strides": (2,)}),
    ((2, 3, 60, 60), (32, 3, 7, 7), {"padding": (3,), "strides": (2,)}),
    ((1, 96, 40, 40), (96, 1, 5, 5), {"padding": (2,), "groups": 96}),
]


@pytest.mark.parametrize("target", WIDTHS)
@pytest.mark.parametrize(("extents", "sizes", "attrs"), SHARED)
def test_threads_share_the_work_and_change_no_bit(
    extents: tuple[int, ...], sizes: tuple[int, ...], attrs: dict[str, Any], target: str
) -> None:
    x, weight = Var("x", tensor(extents, "float32")), numbers(*sizes, seed=1)
    bb = BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            gv = bb.emit_output(call("nn.conv2d", x, const(weight), **attrs))
        bb.emit_func_output(gv)
    executable, data = build(bb.get(), target=target), numbers(*extents)

    one, two = (np.array(VirtualMachine(executable, num_threads=n)["main"](data)) for n in (1, 2))

    np.testing.assert_array_equal(one, two)
    np.testing.assert_allclose(one, defined("conv2d", data, weight, **attrs), atol=1e-4)


def test_long_lines_are_no_bands() -> None:
    """One axis has a single line, which threads could not share."""
    along_one = convolution("conv1d", (1, 4, 90), (32, 4, 5))
    long = convolution(
        "conv2d", (1, 9, 9000, 16), (3, 3, 16, 32), padding=(1,), strides=(2,), **LAST
    )

    assert calls(along_one)[2] == "window_tile"
    assert "rows0" in {b.name for b in allocated(along_one)}
    assert "rows0" in {b.name for b in allocated(long)}


def allocated(function: PrimFunc) -> list[Buffer]:
    """The buffers that turns of the scheduled function need."""
    blocks = (s for s in statements(schedule(function).body) if isinstance(s, TirBlock))
    return [b for block in blocks for b in block.allocs]
