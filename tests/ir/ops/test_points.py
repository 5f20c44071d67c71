"""Images read at points, regions of interest and boxes: known values, edges, what they refuse."""

from typing import Any

import numpy as np
import pytest

from relax_egraph.errors import IllTyped, NotLowerable
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.dims import Dim, symbol
from relax_egraph.ir.expr import Attr, Call, Var
from relax_egraph.ir.op import OPS, infer
from relax_egraph.ir.struct_info import TensorStructInfo, tensor
from relax_egraph.lower.legalize import LEGALIZE
from relax_egraph.tir import te
from tests.support.ops.case import Array

n, r = symbol("n"), symbol("r")

IMAGE = np.arange(6.0).reshape(1, 1, 2, 3)


def of(*shape: Dim, dtype: str = "float32") -> Var:
    return Var("x", tensor(shape, dtype))


def computed(name: str, *operands: Any, **attrs: Attr) -> Array:
    return np.asarray(apply_op(OPS[name], operands, attrs))


def test_points_go_from_center_to_center_or_from_border_to_border() -> None:
    corners = np.array([[[[-1.0, -1], [1, -1], [0, 0], [1, 1]]]])

    centers = computed("image.grid_sample", IMAGE, corners, align_corners=True)
    borders = computed("image.grid_sample", IMAGE, corners)
    kept = computed("image.grid_sample", IMAGE, corners, padding_mode="border")

    np.testing.assert_allclose(centers, [[[[0, 2, 2.5, 5]]]])
    np.testing.assert_allclose(borders, [[[[0, 0.5, 2.5, 1.25]]]])
    np.testing.assert_allclose(kept, centers)


@pytest.mark.parametrize(
    ("beyond", "expected"),
    [
        ("zeros", [0, 0, 1, 2, 3, 0, 0]),
        ("border", [1, 1, 1, 2, 3, 3, 3]),
        ("reflection", [2, 1, 1, 2, 3, 3, 2]),
    ],
)
def test_beyond_the_border_is_what_the_mode_says(beyond: str, expected: list[int]) -> None:
    data = np.array([[[[1.0, 2, 3]]]])
    x = (2 * np.arange(-2, 5) + 1) / 3 - 1
    grid = np.stack([x, 0 * x], -1)[None, None]

    result = computed(
        "image.grid_sample", data, grid, method="nearest_neighbor", padding_mode=beyond
    )

    np.testing.assert_array_equal(result[0, 0, 0], expected)


@pytest.mark.parametrize("beyond", ["zeros", "border", "reflection"])
def test_points_at_infinity_and_nowhere_read_inside(beyond: str) -> None:
    wild = np.array([np.inf, -np.inf, np.nan, 1e30])
    grid = np.stack([wild, wild], -1)[None, None]

    with np.errstate(all="ignore"):
        result = computed("image.grid_sample", IMAGE, grid, padding_mode=beyond)

    assert np.isin(result, IMAGE).all()
    assert beyond != "zeros" or not result.any()


def test_a_bin_is_the_mean_of_its_points() -> None:
    box, first = np.array([[0.0, 0, 2, 2]]), np.array([0])
    data = np.arange(16.0).reshape(1, 1, 4, 4)
    attrs: dict[str, Attr] = {"pooled_size": (1, 1), "sampling_ratio": 2}

    at_halves = computed("image.roi_align", data, box, first, **attrs)
    whole = computed("image.roi_align", data, box, first, **attrs, aligned=False)

    np.testing.assert_allclose([at_halves.item(), whole.item()], [2.5, 5])


def test_a_box_of_absurd_extent_is_refused() -> None:
    box, first = np.array([[0.0, 0, 1e30, 2]]), np.array([0])

    with pytest.raises(ValueError, match=r": a bin of a box has \d+ points along an axis$"):
        computed("image.roi_align", IMAGE, box, first, pooled_size=(1, 1))


def test_of_boxes_that_overlap_the_best_is_kept() -> None:
    boxes = np.array([[[0.0, 0, 2, 2], [2, 2, 0, 0.5], [0, 3, 1, 4]]])
    scores = np.array([[[0.5, 0.75, 0.5]], [[0.5, 0.5, 0.25]]]).reshape(1, 2, 3)
    attrs: dict[str, Attr] = {"max_output_boxes_per_class": 3, "iou_threshold": 0.5}

    kept = computed("image.non_max_suppression", boxes, scores, **attrs)
    above = computed("image.non_max_suppression", boxes, scores, **attrs, score_threshold=0.5)

    np.testing.assert_array_equal(kept, [[0, 0, 1], [0, 0, 2], [0, 1, 0], [0, 1, 2]])
    np.testing.assert_array_equal(above, [[0, 0, 1]])


def test_no_box_is_kept_unless_it_is_said_how_many() -> None:
    found = computed("image.non_max_suppression", np.ones((1, 2, 4)), np.ones((1, 1, 2)))

    np.testing.assert_array_equal(found, np.zeros((0, 3), np.int64), strict=True)


def test_shapes_are_those_of_grids_and_bins() -> None:
    sampled = infer(Call(OPS["image.grid_sample"], (of(n, 3, 8, 9), of(n, 4, r, 2)), {}))
    attrs: dict[str, Attr] = {"pooled_size": (5, 6)}
    pooled = infer(
        Call(OPS["image.roi_align"], (of(n, 3, 8, 9), of(r, 4), of(r, dtype="int64")), attrs)
    )

    assert sampled == tensor((n, 3, 4, r), "float32")
    assert pooled == tensor((r, 3, 5, 6), "float32")


def test_as_many_points_as_pixels_are_counted_at_run_time() -> None:
    operands = [te.placeholder(s, d) for s, d in (((1, 1, 4, 4), "float32"), ((r, 4), "float32"))]
    indices = te.placeholder((r,), "int64")

    with pytest.raises(NotLowerable, match="how many points a bin has"):
        LEGALIZE["image.roi_align"](
            *operands, indices, pooled_size=(1, 1), spatial_scale=1.0, sampling_ratio=0,
            mode="avg", aligned=True,
        )  # fmt: skip


DATA = 'R.Tensor((1, 3, 8, 9), "float32")'
GRID = f'R.image.grid_sample of {DATA} and R.Tensor((1, 4, 5, 2), "float32"): '
ROI = f'R.image.roi_align of {DATA}, R.Tensor((2, 4), "float32") and R.Tensor((2,), "int64"): '
SIZE: dict[str, Attr] = {"pooled_size": (2, 2)}

REFUSED: list[tuple[str, tuple[Var, ...], dict[str, Attr], str]] = [
    (
        "image.grid_sample",
        (of(1, 3, 8, 9), of(1, 4, 5, 2)),
        {"method": "area"},
        f"{GRID}method is 'area', needs one of nearest_neighbor, linear, cubic",
    ),
    (
        "image.grid_sample",
        (of(1, 3, 8, 9), of(1, 4, 5, 2)),
        {"padding_mode": "wrap"},
        f"{GRID}padding_mode is 'wrap', needs one of zeros, border, reflection",
    ),
    (
        "image.grid_sample",
        (of(1, 3, 8, 9), of(1, 4, 5, 3)),
        {},
        f'R.image.grid_sample of {DATA} and R.Tensor((1, 4, 5, 3), "float32"): '
        "needs a grid of points of 2 for each image",
    ),
    (
        "image.grid_sample",
        (of(1, 3, 8), of(1, 4, 1)),
        {},
        'R.image.grid_sample of R.Tensor((1, 3, 8), "float32") and '
        'R.Tensor((1, 4, 1), "float32"): needs data of rank 4 or 5',
    ),
    (
        "image.roi_align",
        (of(1, 3, 8, 9), of(2, 4), of(2, dtype="int64")),
        {"pooled_size": (2,)},
        f"{ROI}pooled_size is [2], needs 2 values of 1 or more",
    ),
    (
        "image.roi_align",
        (of(1, 3, 8, 9), of(2, 4), of(2, dtype="int64")),
        {**SIZE, "sampling_ratio": -1},
        f"{ROI}sampling_ratio is -1, needs 0 or more",
    ),
    (
        "image.roi_align",
        (of(1, 3, 8, 9), of(2, 4), of(3, dtype="int64")),
        SIZE,
        ROI.replace("(2,)", "(3,)") + "needs boxes of shape (r, 4), and r indices",
    ),
    (
        "image.non_max_suppression",
        (of(1, 3, 4), of(1, 2, 5)),
        {},
        'R.image.non_max_suppression of R.Tensor((1, 3, 4), "float32") and '
        'R.Tensor((1, 2, 5), "float32"): '
        "needs boxes of shape (n, b, 4), and scores of (n, class, b)",
    ),
]


@pytest.mark.parametrize(("name", "operands", "attrs", "message"), REFUSED)
def test_what_does_not_fit_is_refused(
    name: str, operands: tuple[Var, ...], attrs: dict[str, Attr], message: str
) -> None:
    with pytest.raises(IllTyped) as refused:
        infer(Call(OPS[name], operands, attrs))

    assert str(refused.value) == message


def test_of_unknown_operands_only_the_rank_is_known() -> None:
    unknown = Var("u", TensorStructInfo())

    assert infer(Call(OPS["image.grid_sample"], (unknown, unknown), {})) == tensor(None, None)
    made = infer(Call(OPS["image.roi_align"], (unknown, unknown, unknown), SIZE))
    assert made == tensor(None, None, 4)
