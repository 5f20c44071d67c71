"""Transposed convolutions, taken apart by the phases of their strides, against their definition."""

from typing import Any

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build
from relax_egraph.ir import call, const, dims, tensor
from relax_egraph.ir.block_builder import BlockBuilder
from relax_egraph.ir.expr import Var
from relax_egraph.ir.op import OPS, complete_attrs
from relax_egraph.lower.emit.machine import scheduling_for
from relax_egraph.lower.jit.processors import processor
from relax_egraph.lower.legalize import LEGALIZE
from relax_egraph.lower.schedule import schedule
from relax_egraph.tir import te
from tests.lower.schedule.test_conv import (
    H,
    N,
    W,
    assert_same,
    calls,
    computed,
    convolution,
    defined,
    numbers,
)
from tests.support.pairwise import pairwise

LAST: dict[str, Any] = {"data_layout": "NHWC", "kernel_layout": "HWIO"}


def both_layouts(data: tuple[int, ...], weight: tuple[int, ...], **attrs: Any) -> None:
    """Of ``NCHW`` and ``IOHW``, and with channels last."""
    x, w = numbers(*data), numbers(*weight, seed=1)
    assert_same("conv2d_transpose", x, w, None, kernel_layout="IOHW", **attrs)
    x = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    w = np.ascontiguousarray(w.transpose(2, 3, 0, 1))
    assert_same("conv2d_transpose", x, w, None, **LAST, **attrs)


@pytest.mark.parametrize(
    ("stride", "dilation", "padding"),
    pairwise([1, 2, 3], [1, 2, 3], [(0,), (1,), (0, 1, 2, 1), (2, 1, 0, 0)]),
)
def test_strides_dilations_and_paddings(
    stride: int, dilation: int, padding: tuple[int, ...]
) -> None:
    both_layouts(
        (2, 5, 4, 5), (5, 18, 3, 4), strides=(stride, 2), dilation=(1, dilation), padding=padding
    )


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("features", [1, 3, 20, 70])
def test_windows_and_features_of_every_size(size: int, features: int) -> None:
    """A window smaller than the stride leaves results that nothing reaches: they are 0."""
    both_layouts((1, 6, 9, 10), (6, features, size, size), strides=(2,))


@pytest.mark.parametrize("more", [(1,), (0, 1), (1, 0)])
def test_more_at_the_end(more: tuple[int, ...]) -> None:
    both_layouts((1, 4, 5, 6), (4, 8, 3, 3), strides=(2,), padding=(1,), output_padding=more)


def test_other_numbers_of_axes() -> None:
    x, w = numbers(2, 6, 19), numbers(6, 12, 4, seed=1)
    assert_same("conv1d_transpose", x, w, strides=(3,), padding=(1, 2))
    x, w = numbers(1, 6, 4, 5, 3), numbers(6, 7, 2, 3, 3, seed=1)
    assert_same("conv3d_transpose", x, w, strides=(1, 2, 2), padding=(1, 0, 1))


@pytest.mark.parametrize("point", [(0, 3, 3), (1, 1, 1), (2, 7, 4), (1, 5, 40), (1, 0, 3)])
@pytest.mark.parametrize("features", [6, 66])
def test_extents_known_at_run_time(point: tuple[int, int, int], features: int) -> None:
    n, h, w = point
    weight = numbers(4, features, 3, 3, seed=1)
    assert_same(
        "conv2d_transpose",
        numbers(n, 4, h, w),
        weight,
        ((N, 4, H, W), weight.shape),
        strides=(2,),
        padding=(0,),
    )
    last = np.ascontiguousarray(weight.transpose(2, 3, 0, 1))
    shapes: Any = ((N, H, W, 4), last.shape)
    assert_same("conv2d_transpose", numbers(n, h, w, 4), last, shapes, strides=(2,), **LAST)


@pytest.mark.parametrize(("i", "o"), [(0, 3), (3, 0), (0, 0)])
def test_no_channels_and_no_features(i: int, o: int) -> None:
    both_layouts((2, i, 5, 5), (i, o, 3, 3), strides=(2,))


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("features", [12, 70])
def test_what_follows(features: int, *, last: bool) -> None:
    data, weight = (2, 6, 5, 9), (6, features, 3, 3)
    attrs: dict[str, Any] = {"strides": (2,), "padding": (1,), "kernel_layout": "IOHW"}
    x, w, b = numbers(*data), numbers(*weight, seed=1), numbers(features, seed=2)
    expected = np.maximum(defined("conv2d_transpose", x, w, **attrs) + b[:, None, None], 0)
    if last:
        x = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
        w = np.ascontiguousarray(w.transpose(2, 3, 0, 1))
        expected, attrs = expected.transpose(0, 2, 3, 1), {**attrs, **LAST}
    op = OPS["nn.conv2d_transpose"]
    given = [te.placeholder(a.shape, name=n) for a, n in ((x, "x"), (w, "w"), (b, "b"))]
    out = LEGALIZE[op.name](*given[:2], **complete_attrs(op, attrs))
    assert isinstance(out, te.Tensor)
    bias, channel = given[2], 3 if last else 1
    relu = te.compute(out.shape, lambda *i: te.maximum(out[i] + bias[i[channel]], 0.0), "relu")

    function = te.create_prim_func(*given, relu)
    actual = computed(function, (x, w, b), expected.shape)

    assert schedule(function).attrs["schedule"] == "conv"
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def test_phases_that_see_the_same_are_multiplied_with_the_same_rows() -> None:
    apart = convolution("conv2d_transpose", (1, 4, 4, 40), (4, 4, 40, 72), strides=(2,), **LAST)
    together = convolution("conv2d_transpose", (1, 4, 4, 40), (2, 2, 40, 72), strides=(2,), **LAST)

    assert calls(apart) == ["gemm_tile"] * 4
    assert calls(together) == ["gemm_tile"] * 4
    assert str(schedule(apart).body).count("'rows") > str(schedule(together).body).count("'rows")


def test_planes_are_multiplied_where_they_lie() -> None:
    """Unless channels evict each other from the nearest cache, or are multiplied by lane."""
    weight, attrs = (40, 72, 2, 2), {"strides": (2,), "kernel_layout": "IOHW"}
    apart = convolution("conv2d_transpose", (1, 40, 4, 5), weight, **attrs)
    together = convolution("conv2d_transpose", (1, 40, 16, 32), weight, **attrs)
    in_place = [*["gemm_tile"] * 4, "transpose_32"]

    with scheduling_for(processor("x86_64")):
        assert calls(apart) == in_place
        assert calls(together) == ["transpose_32", *in_place]
    with scheduling_for(processor("aarch64")):
        assert calls(apart) == ["transpose_32", *in_place]
    x, w = numbers(2, 530, 4, 5), numbers(530, 72, 2, 2, seed=1)
    assert_same("conv2d_transpose", x, w, None, **attrs)


@pytest.mark.parametrize("strides", [(2,), (5,)])
def test_constant_weights(strides: tuple[int, ...]) -> None:
    """Also with so many phases that they are not taken apart."""
    x, w = Var("x", tensor((dims.symbol("n"), 8, 6, 6), "float32")), numbers(8, 20, 4, 4)
    bb = BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(call("nn.conv2d_transpose", x, const(w), strides=strides))
            gv = bb.emit_output(y)
        bb.emit_func_output(gv)
    data = numbers(2, 8, 6, 6)

    actual = VirtualMachine(build(bb.get()))["main"](data)

    expected = defined("conv2d_transpose", data, w, strides=strides)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
