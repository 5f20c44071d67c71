"""Detection operators on a few boxes, computed by hand."""

from typing import Any

import numpy as np
import pytest

from relax_egraph.errors import IllTyped
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.expr import Call, Var
from relax_egraph.ir.op import OPS, infer
from relax_egraph.ir.struct_info import tensor

ROWS = np.array(
    [
        [
            [0, 0.5, 0, 0, 2, 2],
            [1, 0.9, 0, 0, 2, 2],
            [0, 0.8, 0, 0, 2, 2.2],
            [0, 0.1, 5, 5, 6, 6],
        ]
    ],
    np.float32,
)
"""Rows of a class, a score and a box: the third covers the first, which is of its class."""


def computed(name: str, *operands: Any, **attrs: Any) -> Any:
    return apply_op(OPS[f"vision.{name}"], operands, attrs)


def test_rows_with_a_score_come_first() -> None:
    count, rows, numbers = computed("get_valid_counts", ROWS, score_threshold=0.2)

    assert (count.tolist(), numbers.tolist()) == ([3], [[0, 1, 2, -1]])
    np.testing.assert_array_equal(rows[0, :3], ROWS[0, :3])
    assert (rows[0, 3] == -1).all()


@pytest.mark.parametrize(
    ("attrs", "kept"),
    [
        ({}, [1, 2, 3, -1]),
        ({"force_suppress": True}, [1, 3, -1, -1]),
        ({"id_index": -1, "max_output_size": 1}, [1, -1, -1, -1]),
        ({"top_k": 2}, [1, 2, -1, -1]),
        ({"iou_threshold": 0.95}, [1, 2, 0, 3]),
    ],
)
def test_boxes_of_a_class_that_overlap_a_better_one_are_dropped(
    attrs: dict[str, Any], kept: list[int]
) -> None:
    numbers = np.arange(4, dtype=np.int32)[None]

    chosen, count = computed("non_max_suppression", ROWS, np.array([4], np.int32), numbers, **attrs)

    assert chosen.tolist() == [kept]
    assert count.tolist() == [[sum(k >= 0 for k in kept)]]


def test_boxes_are_chosen_for_each_class() -> None:
    boxes = ROWS[:, :, 2:]
    scores = np.array([[[0.5, 0.9, 0.8, 0.1], [0, 0, 0, 0.7]]], np.float32)
    numbers = (np.int64(2), np.float32(0.5), np.float32(0.05))

    rows, count = computed(
        "all_class_non_max_suppression", boxes, scores, *map(np.asarray, numbers)
    )

    assert (rows.shape, count.tolist()) == ((8, 3), [3])
    assert rows[:3].tolist() == [[0, 0, 1], [0, 0, 3], [0, 1, 3]]


def test_regions_are_pooled() -> None:
    image = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    region = np.array([[0, 0, 0, 3, 3]], np.float32)

    pooled = computed("roi_pool", image, region, pooled_size=(2,), spatial_scale=1.0)
    aligned = computed(
        "roi_align", image, region, pooled_size=(1, 1), spatial_scale=1.0, sample_ratio=1
    )

    assert pooled.tolist() == [[[[5, 7], [13, 15]]]]
    assert aligned.tolist() == [[[[7.5]]]]  # at the middle of the image


@pytest.mark.parametrize("corner", [np.nan, np.inf, -np.inf])
def test_a_region_without_finite_borders_has_no_pixels(corner: float) -> None:
    image = np.ones((1, 1, 4, 4), np.float32)
    regions = np.array([[0, corner, 0, 3, 3], [0, 0, 0, 3, 3]], np.float32)

    pooled = computed("roi_pool", image, regions, pooled_size=(1, 1), spatial_scale=1.0)

    assert pooled.ravel().tolist() == [0, 1]


def test_offsets_of_zero_are_the_anchors() -> None:
    anchors = np.array([[[0.1, 0.2, 0.5, 0.8]]], np.float32)
    logits = np.array([[[0], [np.log(3)]]], np.float32)

    boxes, scores = computed(
        "multibox_transform_loc", logits, np.zeros((1, 4), np.float32), anchors, threshold=0.5
    )

    np.testing.assert_allclose(boxes, [[[0.2, 0.1, 0.8, 0.5]]], rtol=1e-6)
    np.testing.assert_allclose(scores, [[[0], [0.75]]], rtol=1e-6)


def test_a_region_has_five_numbers() -> None:
    operands = (tensor((1, 3, 8, 8), "float32"), tensor((2, 4), "float32"))
    call = Call(
        OPS["vision.roi_align"],
        tuple(Var(f"x{k}", info) for k, info in enumerate(operands)),
        {"pooled_size": (2, 2), "spatial_scale": 1.0},
    )

    with pytest.raises(IllTyped, match=r"needs regions of shape \(r, 5\)"):
        infer(call)
