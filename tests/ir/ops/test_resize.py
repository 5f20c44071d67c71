"""Resizing of images: known values and edges."""

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.block_builder import BlockBuilder
from relax_egraph.ir.dims import symbol
from relax_egraph.ir.expr import Attr, Call, ShapeExpr, Var
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import tensor
from tests.support.ops.case import Array

SMALL = np.array([[[[1.0, 2], [3, 4]]]])
FOUR = np.arange(1.0, 17).reshape(1, 1, 4, 4)


def resized(data: Array, size: tuple[int, ...], **attrs: Attr) -> Array:
    return np.asarray(apply_op(OPS["image.resize2d"], (data, size), attrs))


LINEAR: list[tuple[str, list[float]]] = [
    ("half_pixel", [1, 1.25, 1.75, 2]),
    ("pytorch_half_pixel", [1, 1.25, 1.75, 2]),
    ("align_corners", [1, 4 / 3, 5 / 3, 2]),
    ("asymmetric", [1, 1.5, 2, 2]),
    ("tf_half_pixel_for_nn", [1.25, 1.75, 2, 2]),
]


@pytest.mark.parametrize(("mode", "row"), LINEAR)
def test_linear_interpolation_between_the_pixels_that_the_mode_says(
    mode: str, row: list[float]
) -> None:
    result = resized(SMALL[:, :, :1], (1, 4), coordinate_transformation_mode=mode)

    np.testing.assert_allclose(result[0, 0, 0], row, rtol=1e-15)


def test_linear_interpolation_is_along_both_axes() -> None:
    result = resized(SMALL, (4, 4))

    rows = np.array([1, 1.25, 1.75, 2])
    np.testing.assert_allclose(result[0, 0], rows + 2 * (rows[:, None] - 1), rtol=1e-15)


def test_cubic_interpolation_of_a_ramp() -> None:
    row = [0.47265625, 0.76953125, 1.24609375, 1.875, 2.28125, 2.91015625, 3.38671875, 3.68359375]

    result = resized(FOUR, (8, 8), method="cubic")

    np.testing.assert_allclose(result[0, 0, 0], row, rtol=1e-14)


def test_cubic_interpolation_may_leave_out_what_is_beyond_the_border() -> None:
    data = np.array([[[[1.0, 2, 3, 4]]]])

    result = resized(data, (1, 8), method="cubic", cubic_alpha=-0.5, cubic_exclude=1)[0, 0, 0]

    # the first point is at -1/4, where the pixels 0 and 1 have these weights
    inside = np.array([0.8671875, -0.0703125])
    np.testing.assert_allclose(result[0], np.dot(inside, [1, 2]) / np.sum(inside), rtol=1e-14)
    np.testing.assert_allclose(result + result[::-1], np.full(8, 5), rtol=1e-14)


NEAREST: list[tuple[str, str, list[int]]] = [
    ("half_pixel", "round", [1, 3, 5]),
    ("half_pixel", "round_prefer_ceil", [2, 4, 6]),
    ("half_pixel", "round_prefer_floor", [1, 3, 5]),
    ("half_pixel", "floor", [1, 3, 5]),
    ("half_pixel", "ceil", [2, 4, 6]),
    ("align_corners", "", [1, 3, 6]),
    ("align_corners", "round_prefer_ceil", [1, 4, 6]),
    ("asymmetric", "", [1, 3, 5]),
]


@pytest.mark.parametrize(("mode", "rounding", "expected"), NEAREST)
def test_the_nearest_pixel_is_rounded_to_exactly(
    mode: str, rounding: str, expected: list[int]
) -> None:
    data = np.arange(1, 7, dtype=np.uint8).reshape(1, 1, 1, 6)

    result = resized(
        data,
        (1, 3),
        method="nearest_neighbor",
        coordinate_transformation_mode=mode,
        rounding_method=rounding,
    )

    np.testing.assert_array_equal(result, np.array([[[expected]]], np.uint8), strict=True)


def test_a_point_between_two_pixels_is_rounded_to_the_even_one() -> None:
    data = np.arange(4, dtype=np.float32).reshape(1, 1, 1, 4)

    result = resized(
        data,
        (1, 8),
        method="nearest_neighbor",
        coordinate_transformation_mode="asymmetric",
        rounding_method="round",
    )

    np.testing.assert_array_equal(result[0, 0, 0], [0, 0, 1, 2, 2, 2, 3, 3])


def test_of_one_pixel_the_modes_take_the_first_or_the_middle_one() -> None:
    data = np.array([[[[1.0, 2, 3, 4]]]])

    results = [
        float(resized(data, (1, 1), coordinate_transformation_mode=mode).item())
        for mode in ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
    ]

    assert results == [2.5, 1, 1, 1]


def test_a_region_of_interest_beyond_the_image_is_extrapolated() -> None:
    data = np.array([[[[1.0, 2, 3]]]])

    result = resized(
        data,
        (1, 4),
        roi=(0.0, 0.25, 0.0, 1.75),
        coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=-1,
    )

    np.testing.assert_array_equal(result, [[[[1.5, 2.5, -1, -1]]]])


def test_interpolated_integers_are_exact_before_they_are_truncated() -> None:
    data = np.full((1, 1, 3, 3), 3, np.int32)

    result = resized(data, (7, 11))

    np.testing.assert_array_equal(result, np.full((1, 1, 7, 11), 3, np.int32), strict=True)


@pytest.mark.parametrize("method", ["nearest_neighbor", "linear", "cubic"])
def test_an_image_without_pixels_is_0(method: str) -> None:
    empty = np.zeros((1, 1, 2, 0), np.float32)
    expected = np.zeros((1, 1, 2, 3), np.float32)

    bb, data = BlockBuilder(), Var("x", tensor((1, 1, 2, symbol("n")), "float32"))
    with bb.function("main", [data]):
        with bb.dataflow():
            call = Call(OPS["image.resize2d"], (data, ShapeExpr((2, 3))), {"method": method})
            out = bb.emit_output(call)
        bb.emit_func_output(out)

    actual = VirtualMachine(build(bb.get()))["main"](empty)

    np.testing.assert_array_equal(actual, expected, strict=True)
    np.testing.assert_array_equal(resized(empty, (2, 3), method=method), expected, strict=True)
