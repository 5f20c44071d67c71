"""Operators on images: known values, edges, and what they refuse."""

from typing import Any

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build
from relax_egraph.errors import IllTyped
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.block_builder import BlockBuilder
from relax_egraph.ir.dims import Dim, symbol
from relax_egraph.ir.expr import Attr, Call, Expr, ShapeExpr, Var
from relax_egraph.ir.op import OPS, infer
from relax_egraph.ir.struct_info import tensor
from tests.support.ops.case import Array

n = symbol("n")


def of(*shape: Dim, dtype: str = "float32") -> Var:
    return Var("x", tensor(shape, dtype))


def computed(name: str, *operands: Any, **attrs: Attr) -> Array:
    return np.asarray(apply_op(OPS[name], operands, attrs))


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("constant", [9, 9, 9, 1, 2, 3, 9, 9]),
        ("replicate", [1, 1, 1, 1, 2, 3, 3, 3]),
        ("circular", [1, 2, 3, 1, 2, 3, 1, 2]),
        ("reflect", [2, 3, 2, 1, 2, 3, 2, 1]),
    ],
)
def test_padding_goes_on_as_its_mode_says(mode: str, expected: list[int]) -> None:
    data = np.array([1, 2, 3])

    result = computed("nn.pad", data, pad_width=(3, 2), pad_mode=mode, pad_value=9)

    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("mode", ["constant", "replicate", "circular", "reflect"])
def test_padding_of_an_empty_axis_is_the_value(mode: str) -> None:
    attrs: dict[str, Attr] = {"pad_width": (0, 0, 1, 2), "pad_mode": mode, "pad_value": 7.0}
    empty, expected = np.zeros((2, 0), np.float32), np.full((2, 3), 7, np.float32)
    bb, data = BlockBuilder(), of(2, n)
    with bb.function("main", [data]):
        with bb.dataflow():
            out = bb.emit_output(Call(OPS["nn.pad"], (data,), attrs))
        bb.emit_func_output(out)

    actual = VirtualMachine(build(bb.get()))["main"](empty)

    np.testing.assert_array_equal(actual, expected, strict=True)
    np.testing.assert_array_equal(computed("nn.pad", empty, **attrs), expected, strict=True)


def test_pixels_of_channels_become_pixels_beside_each_other() -> None:
    data = np.array([[[1, 2]], [[3, 4]], [[5, 6]], [[7, 8]]])

    result = computed("nn.pixel_shuffle", data, upscale_factor=2)

    np.testing.assert_array_equal(result, [[[1, 3, 2, 4], [5, 7, 6, 8]]])


def test_an_affine_grid_runs_from_corner_to_corner_or_between_them() -> None:
    identity = np.array([[[1.0, 0, 0], [0, 1, 0]]])

    corners = computed("image.affine_grid", identity, (2, 3))
    centers = computed("image.affine_grid", identity, (2, 4), align_corners=False)
    one = computed("image.affine_grid", identity + 0.5, (1, 1))

    x, y = [[-1, 0, 1], [-1, 0, 1]], [[-1, -1, -1], [1, 1, 1]]
    np.testing.assert_array_equal(corners, [[x, y]])
    x, y = [[-0.75, -0.25, 0.25, 0.75]] * 2, [[-0.5] * 4, [0.5] * 4]
    np.testing.assert_array_equal(centers, [[x, y]])
    np.testing.assert_array_equal(one, [[[[0.5]], [[0.5]]]])


def test_symbolic_extents_of_the_result() -> None:
    shapes = [
        infer(Call(OPS["nn.pad"], (of(n, 4),), {"pad_width": (1, 2, 0, 3)})),
        infer(Call(OPS["nn.pixel_shuffle"], (of(n, 9 * n, n, 4),), {"upscale_factor": 3})),
        infer(Call(OPS["image.resize2d"], (of(1, n, 4, 3), ShapeExpr((2 * n, 5))), {})),
        infer(Call(OPS["image.resize3d"], (of(1, 2, 3, 4, n), ShapeExpr((n, n, 2))), {})),
        infer(Call(OPS["image.affine_grid"], (of(n, 2, 3), ShapeExpr((n, 5))), {})),
    ]

    assert shapes == [
        tensor((n + 3, 7), "float32"),
        tensor((n, n, 3 * n, 12), "float32"),
        tensor((1, n, 2 * n, 5), "float32"),
        tensor((1, 2, n, n, 2), "float32"),
        tensor((n, 2, n, 5), "float32"),
    ]


IMAGE, SIZE = of(1, 3, 4, 5), ShapeExpr((2, 3))
PAD, SHUFFLE = "R.nn.pad of ", "R.nn.pixel_shuffle of "
RESIZE = 'R.image.resize2d of R.Tensor((1, 3, 4, 5), "float32") to R.Shape((2, 3)): '
VECTOR = 'R.Tensor((4,), "float32"): '

REFUSED: list[tuple[str, tuple[Expr, ...], dict[str, Attr], str]] = [
    ("nn.pad", (of(4),), {"pad_width": (1,)}, f"{PAD}{VECTOR}pad_width is [1], needs 2 values"),
    (
        "nn.pad",
        (of(4),),
        {"pad_width": (1, -1)},
        f"{PAD}{VECTOR}pad_width is [1, -1], needs values of 0 or more",
    ),
    (
        "nn.pad",
        (of(4),),
        {"pad_width": (1, 1), "pad_mode": "edge"},
        f"{PAD}{VECTOR}pad_mode is 'edge', needs one of constant, reflect, replicate, circular",
    ),
    (
        "nn.pixel_shuffle",
        (of(4),),
        {"upscale_factor": 2},
        f"{SHUFFLE}{VECTOR}needs a tensor of rank 3 or more",
    ),
    (
        "nn.pixel_shuffle",
        (IMAGE,),
        {"upscale_factor": 2},
        f'{SHUFFLE}R.Tensor((1, 3, 4, 5), "float32"): 3 channels are no multiple of 4',
    ),
    (
        "nn.pixel_shuffle",
        (IMAGE,),
        {"upscale_factor": 0},
        f'{SHUFFLE}R.Tensor((1, 3, 4, 5), "float32"): upscale_factor is 0, needs 1 or more',
    ),
    (
        "image.resize2d",
        (IMAGE, ShapeExpr((2,))),
        {},
        'R.image.resize2d of R.Tensor((1, 3, 4, 5), "float32") to R.Shape((2,)): '
        "needs a size of 2 extents",
    ),
    (
        "image.affine_grid",
        (of(1, 2, 3), ShapeExpr((4, 5, 6))),
        {},
        'R.image.affine_grid of R.Tensor((1, 2, 3), "float32") to R.Shape((4, 5, 6)): '
        "needs data of shape (n, 3, 4)",
    ),
    (
        "image.affine_grid",
        (of(1, 2, 3), ShapeExpr((4,))),
        {},
        'R.image.affine_grid of R.Tensor((1, 2, 3), "float32") to R.Shape((4,)): '
        "needs a size of 2 or 3 extents",
    ),
    (
        "image.resize2d",
        (IMAGE, SIZE),
        {"method": "area"},
        f"{RESIZE}method is 'area', needs one of nearest_neighbor, linear, cubic",
    ),
    (
        "image.resize2d",
        (IMAGE, SIZE),
        {"coordinate_transformation_mode": "half"},
        f"{RESIZE}coordinate_transformation_mode is 'half', needs one of half_pixel, "
        "align_corners, asymmetric, pytorch_half_pixel, tf_half_pixel_for_nn, tf_crop_and_resize",
    ),
    (
        "image.resize2d",
        (IMAGE, SIZE),
        {"rounding_method": "up"},
        f"{RESIZE}rounding_method is 'up', needs one of \"\", round, round_prefer_floor, "
        "round_prefer_ceil, floor, ceil",
    ),
    (
        "image.resize2d",
        (IMAGE, SIZE),
        {"roi": (0.0, 1.0)},
        f"{RESIZE}roi is [0.0, 1.0], needs 4 values",
    ),
    (
        "image.resize2d",
        (IMAGE, SIZE),
        {"out_dtype": "half"},
        f"{RESIZE}out_dtype is 'half', needs one of bool, int8, int16, int32, int64, uint8, "
        "uint16, uint32, uint64, float16, bfloat16, float32, float64",
    ),
]


@pytest.mark.parametrize(("name", "operands", "attrs", "message"), REFUSED)
def test_what_does_not_fit_is_refused(
    name: str, operands: tuple[Expr, ...], attrs: dict[str, Attr], message: str
) -> None:
    with pytest.raises(IllTyped) as refused:
        infer(Call(OPS[name], operands, attrs))

    assert str(refused.value) == message
