"""Convolutions: what they compute, by their definition, and what they refuse."""

import itertools
from typing import Any

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build
from relax_egraph.errors import IllTyped, RunError
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.block_builder import BlockBuilder
from relax_egraph.ir.dims import Dim, symbol
from relax_egraph.ir.expr import Attr, Call, Var
from relax_egraph.ir.op import OPS, infer
from relax_egraph.ir.struct_info import tensor
from relax_egraph.script import parse
from tests.support.ops.case import Array

n = symbol("n")


def of(*shape: Dim, dtype: str = "float32") -> Var:
    return Var("x", tensor(shape, dtype))


def computed(name: str, data: Array, weight: Array, **attrs: Attr) -> Array:
    return np.asarray(apply_op(OPS[name], (data, weight), attrs))


def compiled(name: str, data: Var, kernel: Var, **attrs: Attr) -> VirtualMachine:
    bb, weight = BlockBuilder(), Var("w", kernel.struct_info)
    with bb.function("main", [data, weight]):
        with bb.dataflow():
            out = bb.emit_output(Call(OPS[name], (data, weight), attrs))
        bb.emit_func_output(out)
    return VirtualMachine(build(bb.get()))


def test_a_convolution_slides_its_window_without_turning_it() -> None:
    data, weight = np.array([[[1.0, 2, 3, 4]]]), np.array([[[1.0, 10, 100]]])

    result = computed("nn.conv1d", data, weight, padding=(1, 0))

    np.testing.assert_array_equal(result, [[[210, 321, 432]]])


def test_a_convolution_is_the_sum_over_channels_of_the_group_and_the_window() -> None:
    rng = np.random.default_rng(0)
    data, weight = rng.uniform(size=(2, 4, 5, 6)), rng.uniform(size=(6, 2, 2, 3))
    padded = np.zeros((2, 4, 5 + 1 + 2, 6 + 0 + 1))
    padded[:, :, 1:6, 0:6] = data
    expected = np.zeros((2, 6, 4, 3))
    for at in np.ndindex(expected.shape):
        b, o, y, x = at
        for i, r, s in np.ndindex(2, 2, 3):
            channel = (o // 3) * 2 + i
            expected[at] += weight[o, i, r, s] * padded[b, channel, 2 * y + r, 2 * x + s]

    result = computed("nn.conv2d", data, weight, strides=(2,), padding=(1, 0, 2, 1), groups=2)

    np.testing.assert_allclose(result, expected, rtol=1e-14)


ADJOINT: list[dict[str, Any]] = [
    {},
    {"strides": (2, 3), "padding": (1,)},
    {"dilation": (2, 1), "padding": (0, 2), "groups": 2},
    {"strides": (3,), "padding": (1, 0, 2, 1), "dilation": (1, 2), "groups": 2},
]


@pytest.mark.parametrize("attrs", ADJOINT)
def test_a_transposed_convolution_is_the_adjoint_of_the_convolution(attrs: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)
    data, weight = rng.uniform(size=(2, 4, 7, 9)), rng.uniform(size=(6, 4, 3, 2))
    weight = weight[:, : 4 // attrs.get("groups", 1)]
    there = computed("nn.conv2d", data, weight, **attrs)
    other = rng.uniform(size=there.shape)
    back = computed("nn.conv2d_transpose", other, weight, **attrs)
    missing = [d - b for d, b in zip(data.shape[2:], back.shape[2:], strict=True)]
    back = computed("nn.conv2d_transpose", other, weight, output_padding=tuple(missing), **attrs)

    assert back.shape == data.shape
    np.testing.assert_allclose(np.vdot(there, other), np.vdot(data, back), rtol=1e-13)


def test_each_layout_is_a_permutation_of_the_same_result() -> None:
    rng = np.random.default_rng(2)
    data, weight = rng.uniform(size=(2, 3, 4, 5)), rng.uniform(size=(2, 3, 3, 2))
    expected = computed("nn.conv2d", data, weight)
    layouts = itertools.product(("NHWC", "CWHN"), ("HWIO", "WOHI"), (None, "NCHW"))

    for layout, kernel, out in layouts:
        x = data.transpose(["NCHW".index(c) for c in layout])
        w = weight.transpose(["OIHW".index(c) for c in kernel])
        attrs = {"data_layout": layout, "kernel_layout": kernel, "out_layout": out}

        result = computed("nn.conv2d", x, w, **attrs)

        order = ["NCHW".index(c) for c in out or layout]
        np.testing.assert_array_equal(result, expected.transpose(order))


def test_integers_wrap_in_the_result_dtype() -> None:
    data, weight = np.full((1, 2, 1), 100, np.int8), np.full((1, 2, 1), 2, np.int8)

    narrow = computed("nn.conv1d", data, weight)
    wide = computed("nn.conv1d", data, weight, out_dtype="int32")

    np.testing.assert_array_equal(narrow, np.array([[[-112]]], np.int8), strict=True)
    np.testing.assert_array_equal(wide, np.array([[[400]]], np.int32), strict=True)


def test_padding_is_zeros_that_are_multiplied() -> None:
    data, weight = np.ones((1, 1, 2), np.float32), np.array([[[1, 1, np.inf]]], np.float32)
    expected = np.array([[[np.nan]]], np.float32)
    vm = compiled("nn.conv1d", of(1, 1, n), of(1, 1, 3), padding=(0, 1))

    result = computed("nn.conv1d", data, weight, padding=(0, 1))

    np.testing.assert_array_equal(result, expected, strict=True)
    np.testing.assert_array_equal(vm["main"](data, weight), expected, strict=True)


def test_a_transposed_convolution_multiplies_only_taps_that_reach_a_position() -> None:
    data, weight = np.ones((1, 1, 2), np.float32), np.array([[[1, np.inf]]], np.float32)
    expected = np.array([[[1, np.inf, 1, np.inf]]], np.float32)
    vm = compiled("nn.conv1d_transpose", of(1, 1, n), of(1, 1, 2), strides=2)

    result = computed("nn.conv1d_transpose", data, weight, strides=2)

    np.testing.assert_array_equal(result, expected, strict=True)
    np.testing.assert_array_equal(vm["main"](data, weight), expected, strict=True)


def test_script_may_give_one_number_for_all_axes_and_the_out_dtype_void() -> None:
    source = """
from tvm.script import ir as I
from tvm.script import relax as R

@I.ir_module
class Module:
    @R.function
    def main(
        x: R.Tensor((1, 3, "h", 32), "float32"), w: R.Tensor((8, 3, 3, 3), "float32")
    ) -> R.Tensor((1, 8, "h", 16), "float32"):
        with R.dataflow():
            y = R.nn.conv2d(x, w, strides=[1, 2], padding=1, data_layout="NCHW", out_dtype="void")
            R.output(y)
        return y
"""

    result = parse(source)["main"].struct_info

    assert str(result).endswith('R.Tensor((1, 8, h, 16), "float32"), True)')


SYMBOLIC: list[tuple[str, dict[str, Any], tuple[Dim, ...]]] = [
    ("nn.conv2d", {"padding": (1,)}, (n, 4, n, 7)),
    ("nn.conv2d", {"strides": (2,), "dilation": (2,)}, (n, 4, (n - 5) // 2 + 1, 2)),
    ("nn.conv2d_transpose", {"strides": (2,), "output_padding": (1,)}, (n, 4, 2 * n + 2, 16)),
]


@pytest.mark.parametrize(("name", "attrs", "shape"), SYMBOLIC)
def test_the_extents_of_the_result_are_formulas_of_those_of_data(
    name: str, attrs: dict[str, Any], shape: tuple[Dim, ...]
) -> None:
    result = infer(Call(OPS[name], (of(n, 4, n, 7), of(4, 4, 3, 3)), attrs))

    assert result == tensor(shape, "float32")


def test_of_operands_of_unknown_shape_rank_and_dtype_are_known() -> None:
    data = Var("x", tensor(None, "float32"))

    result = infer(Call(OPS["nn.conv3d"], (data, data), {"out_dtype": ""}))

    assert result == tensor(None, "float32", 5)


def test_loops_read_nothing_of_data_without_elements() -> None:
    vm = compiled("nn.conv1d", of(1, 2, n), of(3, 2, 2), padding=(2,))
    spread = compiled("nn.conv1d_transpose", of(1, 2, n), of(2, 3, 4), strides=(2,))
    empty = np.zeros((1, 2, 0), np.float32)

    results = [
        vm["main"](empty, np.ones((3, 2, 2), np.float32)),
        spread["main"](empty, np.ones((2, 3, 4), np.float32)),
    ]

    np.testing.assert_array_equal(results[0], np.zeros((1, 3, 3), np.float32), strict=True)
    np.testing.assert_array_equal(results[1], np.zeros((1, 3, 2), np.float32), strict=True)


def test_a_window_that_is_too_large_at_run_time_is_an_error() -> None:
    data, weight = np.zeros((1, 1, 1, 1), np.float32), np.zeros((1, 1, 3, 3), np.float32)
    vm = compiled("nn.conv2d", of(1, 1, n, n), of(1, 1, 3, 3))

    with pytest.raises(RunError) as refused:
        computed("nn.conv2d", data, weight)
    with pytest.raises(RunError):
        vm["main"](data, weight)

    assert str(refused.value) == (
        'R.nn.conv2d of R.Tensor((1, 1, 1, 1), "float32") and R.Tensor((1, 1, 3, 3), "float32"): '
        "along H the window of 3 does not fit into 1, padding included"
    )


X, W = of(1, 4, 8), of(6, 4, 3)
ASKED = 'R.nn.conv1d of R.Tensor((1, 4, 8), "float32") and R.Tensor((6, 4, 3), "float32"): '

REFUSED: list[tuple[dict[str, Attr], str]] = [
    ({"strides": (1, 1)}, "strides is [1, 1], needs 1 value"),
    ({"strides": 0}, "strides is [0], needs values of 1 or more"),
    ({"dilation": ()}, "dilation is [], needs 1 value"),
    ({"padding": (1, 1, 1)}, "padding is [1, 1, 1], needs 1 or 2 values"),
    ({"padding": (-1,)}, "padding is [-1], needs values of 0 or more"),
    ({"groups": 0}, "groups is 0, needs 1 or more"),
    ({"groups": 2}, "the weight takes 8 channels in 2 groups, the data has 4"),
    ({"data_layout": "NCHW"}, "data_layout is 'NCHW', needs the letters of 'NCW'"),
    ({"kernel_layout": "IOO"}, "kernel_layout is 'IOO', needs the letters of 'OIW'"),
    ({"out_layout": "NC"}, "out_layout is 'NC', needs the letters of 'NCW'"),
    ({"dilation": 4}, "along W the window of 9 does not fit into 8, padding included"),
    (
        {"out_dtype": "half"},
        "out_dtype is 'half', needs one of bool, int8, int16, int32, int64, uint8, "
        "uint16, uint32, uint64, float16, bfloat16, float32, float64",
    ),
]


@pytest.mark.parametrize(("attrs", "message"), REFUSED)
def test_attributes_that_do_not_fit_are_refused(attrs: dict[str, Attr], message: str) -> None:
    with pytest.raises(IllTyped) as refused:
        infer(Call(OPS["nn.conv1d"], (X, W), attrs))

    assert str(refused.value) == ASKED + message


MISMATCHED: list[tuple[str, Var, Var, dict[str, Attr], str]] = [
    ("nn.conv1d", of(1, 4), W, {}, "needs data of rank 3"),
    ("nn.conv1d", X, of(6, 4), {}, "needs a weight of rank 3"),
    (
        "nn.conv1d",
        X,
        of(6, 4, 3, dtype="int8"),
        {},
        "needs operands of one dtype, or an out_dtype",
    ),
    (
        "nn.conv1d",
        X,
        of(6, n + 5, 3),
        {},
        "the weight takes n + 5 channels in 1 groups, the data has 4",
    ),
    ("nn.conv1d", X, of(5, 2, 3), {"groups": 2}, "5 channels do not split into 2 groups"),
    ("nn.conv1d", X, of(5, 4, 0), {}, "along W the window has no elements"),
    (
        "nn.conv1d",
        X,
        of(6, 4, n + 9),
        {},
        "along W the window of n + 9 does not fit into 8, padding included",
    ),
    (
        "nn.conv1d_transpose",
        X,
        of(4, 2, 1),
        {"padding": (5,)},
        "along W the padding takes more than there is",
    ),
    (
        "nn.conv1d_transpose",
        X,
        of(4, 2, 3),
        {"strides": 2, "output_padding": 2},
        "output_padding is [2], needs values below the strides [2]",
    ),
]


@pytest.mark.parametrize(("name", "data", "weight", "attrs", "message"), MISMATCHED)
def test_operands_that_do_not_fit_are_refused(
    name: str, data: Var, weight: Var, attrs: dict[str, Attr], message: str
) -> None:
    with pytest.raises(IllTyped) as refused:
        infer(Call(OPS[name], (data, weight), attrs))

    asked = f"R.{name} of {data.struct_info} and {weight.struct_info}: "
    assert str(refused.value) == asked + message


def test_positions_that_are_one_axis_of_the_result_in_parts_are_told_apart() -> None:
    """Of the result (d, w, feature, n, h), d and w are one axis, h is another."""
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s).astype("f") for s in ((2, 3, 1, 1, 3), (2, 1, 2, 1, 2)))
    layouts = {"data_layout": "DWCNH", "kernel_layout": "DHWIO"}
    attrs: Any = {"padding": [2, 1, 2, 1, 0, 2], **layouts}

    result = compiled("nn.conv3d", of(*x.shape), of(*w.shape), **attrs)["main"](x, w)

    expected = computed("nn.conv3d", x, w, **attrs)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5, strict=True)


@pytest.mark.parametrize(
    ("x_shape", "w_shape", "attrs"),
    [
        ((1, 9, 3, 5), (1, 5, 2, 5), {"strides": (2, 2), "padding": (0, 4, 0, 4)}),
        ((1, 20, 2, 1), (3, 1, 66, 1), {"strides": (1, 3), "padding": (0, 2, 0, 1)}),
        ((2, 6, 1, 1), (5, 3, 2, 1), {"strides": (1, 4), "padding": (3, 3, 1, 0)}),
        ((1, 9, 2, 3), (7, 1, 4, 3), {"strides": (3, 4), "padding": (1, 0, 3, 0)}),
    ],
)
def test_phases_of_one_column_are_at_their_rows(
    x_shape: tuple[int, ...], w_shape: tuple[int, ...], attrs: dict[str, Any]
) -> None:
    """The positions of a phase are one axis, with the variable of the column, of which is one."""
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s).astype("f") for s in (x_shape, w_shape))
    attrs |= {"data_layout": "NHWC", "kernel_layout": "HWOI"}

    result = compiled("nn.conv2d_transpose", of(*x_shape), of(*w_shape), **attrs)["main"](x, w)

    expected = computed("nn.conv2d_transpose", x, w, **attrs)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5, strict=True)
