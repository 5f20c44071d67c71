"""The choice of boxes by their scores, in the namespace ``R.vision``."""

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.points import check_one_of
from relax_egraph.ir.ops.window import check_floating, check_rank
from relax_egraph.ir.requirements import differ, exceeds
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, TupleStructInfo, tensor

FORMATS = ("onnx", "tensorflow")
"""The forms of the boxes that are chosen for each class."""


@op("vision")
def get_valid_counts(
    data: TensorStructInfo,
    *,
    score_threshold: float = 0.0,
    id_index: int = 0,
    score_index: int = 1,
) -> StructInfo:
    """The count of rows with a score above the threshold, these rows first, and their numbers.

    `data` is (n, b, e).  With an `id_index` that is not -1, that element must not be negative.
    Rows and numbers behind the valid ones are -1.
    """
    subject = f"R.vision.get_valid_counts of {data}"
    _check_rows(subject, data, score_index, id_index)
    if data.dims is None:
        return _tuple(tensor(None, "int32", 1), _same(data), tensor(None, "int32", 2))
    images, boxes, _ = data.dims
    return _tuple(tensor((images,), "int32"), _same(data), tensor((images, boxes), "int32"))


@op("vision")
def non_max_suppression(
    data: TensorStructInfo,
    valid_count: TensorStructInfo,
    indices: TensorStructInfo,
    *,
    max_output_size: int = -1,
    iou_threshold: float = 0.5,
    force_suppress: bool = False,
    top_k: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = 0,
    return_indices: bool = True,
    invalid_to_bottom: bool = False,
    soft_nms_sigma: float = 0.0,
    score_threshold: float = 0.0,
) -> StructInfo:
    """Rows (n, b, e) by descending scores, those that overlap an earlier one of their class as -1.

    Only the first `valid_count` rows count, and of these the `top_k` best; at most
    `max_output_size` stay.  With `return_indices` the result is their `indices` (n, b), -1 behind
    them, and their counts (n, 1); else the rows, with `invalid_to_bottom` the chosen ones first.  A
    positive `soft_nms_sigma` lowers scores by ``exp(-iou² / 2σ)``, drops those not above
    `score_threshold`, and puts the rows before the indices.
    """
    subject = f"R.vision.non_max_suppression of {data}, {valid_count} and {indices}"
    _check_rows(subject, data, score_index, id_index, coord_start)
    for info, what, ndim in ((valid_count, "counts", 1), (indices, "indices", 2)):
        check_rank(subject, what, info, ndim)
        if info.dtype not in (None, "int32"):
            raise IllTyped(f"{subject}: needs {what} of int32")
    if data.dims is None:
        numbers = (tensor(None, "int32", 2), tensor(None, "int32", 2))
    else:
        images, boxes, _ = data.dims
        for info, shape in ((valid_count, (images,)), (indices, (images, boxes))):
            if info.dims is not None and any(map(differ, info.dims, shape)):
                raise IllTyped(f"{subject}: needs counts of shape (n,), and indices of (n, b)")
        numbers = (tensor((images, boxes), "int32"), tensor((images, 1), "int32"))
    if not return_indices:
        return _same(data)
    return _tuple(*((_same(data),) if soft_nms_sigma > 0 else ()), *numbers)


@op("vision")
def all_class_non_max_suppression(
    boxes: TensorStructInfo,
    scores: TensorStructInfo,
    max_output_boxes_per_class: TensorStructInfo,
    iou_threshold: TensorStructInfo,
    score_threshold: TensorStructInfo,
    *,
    output_format: str = "onnx",
) -> StructInfo:
    """The boxes of each class that overlap none of a higher score by a threshold or more.

    `boxes` are (n, b, 4), of corners in any order, `scores` (n, class, b); of the other operands
    the first element counts; an `iou_threshold` of 0 or less chooses none.  ``"onnx"``: rows
    ``(n, class, b)``, 0 behind the chosen ones, and their count, of shape (1,).  ``"tensorflow"``:
    for each image rows ``(class, b)``, their scores, and their count.
    """
    subject = f"R.vision.all_class_non_max_suppression of {boxes} and {scores}"
    check_one_of(subject, "output_format", output_format, FORMATS)
    for info, what in ((boxes, "boxes"), (scores, "scores")):
        check_floating(subject, info)
        check_rank(subject, what, info, 3)
    for info in (max_output_boxes_per_class, iou_threshold, score_threshold):
        if any(exceeds(1, extent) for extent in info.dims or ()):
            raise IllTyped(f"{subject}: needs an element in each of the other operands")
    if boxes.dims is None or scores.dims is None:
        if output_format == "onnx":
            return _tuple(tensor(None, "int64", 2), tensor((1,), "int64"))
        of_each = (tensor(None, "int64", 3), tensor(None, "float32", 2))
        return _tuple(*of_each, tensor(None, "int64", 1))
    (images, count, corners), (batch, classes, scored) = boxes.dims, scores.dims
    if differ(images, batch) or differ(count, scored) or differ(corners, 4):
        raise IllTyped(f"{subject}: needs boxes of shape (n, b, 4), and scores of (n, class, b)")
    most = dims.mul(classes, count)
    if output_format == "onnx":
        return _tuple(tensor((dims.mul(images, most), 3), "int64"), tensor((1,), "int64"))
    of_each = (tensor((images, most, 2), "int64"), tensor((images, most), "float32"))
    return _tuple(*of_each, tensor((images,), "int64"))


def _check_rows(
    subject: str, data: TensorStructInfo, score: int, of_class: int, corners: int | None = None
) -> None:
    check_floating(subject, data)
    check_rank(subject, "data", data, 3)
    last = data.dims[2] if data.dims is not None else None
    needed = max(score, of_class) + 1
    if score < 0 or of_class < -1 or (last is not None and exceeds(needed, last)):
        raise IllTyped(f"{subject}: score_index is {score}, id_index {of_class}: no such element")
    if corners is not None and (corners < 0 or (last is not None and exceeds(corners + 4, last))):
        raise IllTyped(f"{subject}: coord_start is {corners}, needs 4 elements from there on")


def _same(data: TensorStructInfo) -> TensorStructInfo:
    return tensor(data.dims, data.dtype, 3)


def _tuple(*fields: StructInfo) -> TupleStructInfo:
    return TupleStructInfo(fields)
