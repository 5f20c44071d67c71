"""Images read at points between their pixels: grids of points, and regions of interest."""

from relax_egraph.errors import IllTyped
from relax_egraph.ir.dtypes import is_integer
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.resizing import TAPS
from relax_egraph.ir.ops.window import check_floating, check_rank
from relax_egraph.ir.requirements import differ
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, tensor

BEYOND = ("zeros", "border", "reflection")
"""The modes of points beyond the border of an image."""

POOLED = ("avg", "max")
"""The modes of combining the points of a bin."""


@op("image")
def grid_sample(
    data: TensorStructInfo,
    grid: TensorStructInfo,
    *,
    method: str = "linear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> StructInfo:
    """``out[n, c, i…]``: channel c of image n, interpolated at the point ``grid[n, i…, :]``.

    A point is ``(x, y)``, or ``(x, y, z)`` of a volume, from -1 to 1: from the center of the first
    pixel to that of the last with `align_corners`, else from border to border.  Beyond is 0, the
    pixel at the border, or the image reflected there.  A coordinate that is NaN is before the
    first pixel.  0 of an image without pixels.
    """
    subject = f"R.image.grid_sample of {data} and {grid}"
    check_one_of(subject, "method", method, tuple(TAPS))
    check_one_of(subject, "padding_mode", padding_mode, BEYOND)
    check_floating(subject, data)
    check_floating(subject, grid)
    if data.ndim not in (-1, 4, 5):
        raise IllTyped(f"{subject}: needs data of rank 4 or 5")
    if data.ndim >= 0:
        check_rank(subject, "a grid", grid, data.ndim)
    if data.dims is None or grid.dims is None:
        return tensor(None, data.dtype, data.ndim)
    batch, channels, *extents = data.dims
    if differ(batch, grid.dims[0]) or differ(len(extents), grid.dims[-1]):
        raise IllTyped(f"{subject}: needs a grid of points of {len(extents)} for each image")
    return tensor((batch, channels, *grid.dims[1:-1]), data.dtype)


@op("image")
def roi_align(
    data: TensorStructInfo,
    rois: TensorStructInfo,
    batch_indices: TensorStructInfo,
    *,
    pooled_size: tuple[int, ...],
    spatial_scale: float = 1.0,
    sampling_ratio: int = 0,
    mode: str = "avg",
    aligned: bool = True,
) -> StructInfo:
    """``out[r, c, i, j]``: the mean of image ``batch_indices[r]`` at points in bin (i, j) of a box.

    Box r is ``rois[r] * spatial_scale``, ``(x1, y1, x2, y2)`` in pixels whose centers are at whole
    numbers, with `aligned` at halves; if not, it has an extent of 1 at least.  A bin has
    `sampling_ratio` points along each axis, or if that is 0, one for each pixel begun.  Points more
    than a pixel outside are 0.  With ``"max"`` it is the greatest of all weighted pixels.  Indices
    outside are clamped.
    """
    subject = f"R.image.roi_align of {data}, {rois} and {batch_indices}"
    check_one_of(subject, "mode", mode, POOLED)
    if len(pooled_size) != 2 or min(pooled_size) < 1:
        raise IllTyped(
            f"{subject}: pooled_size is {list(pooled_size)}, needs 2 values of 1 or more"
        )
    if sampling_ratio < 0:
        raise IllTyped(f"{subject}: sampling_ratio is {sampling_ratio}, needs 0 or more")
    check_floating(subject, data)
    check_floating(subject, rois)
    if batch_indices.dtype is not None and not is_integer(batch_indices.dtype):
        raise IllTyped(f"{subject}: needs indices of integers")
    for info, what, ndim in ((data, "data", 4), (rois, "boxes", 2), (batch_indices, "indices", 1)):
        check_rank(subject, what, info, ndim)
    if data.dims is None or rois.dims is None:
        return tensor(None, data.dtype, 4)
    count, corners = rois.dims
    indexed = batch_indices.dims[0] if batch_indices.dims is not None else count
    if differ(corners, 4) or differ(count, indexed):
        raise IllTyped(f"{subject}: needs boxes of shape (r, 4), and r indices")
    return tensor((count, data.dims[1], *pooled_size), data.dtype)


@op("image")
def non_max_suppression(
    boxes: TensorStructInfo,
    scores: TensorStructInfo,
    *,
    max_output_boxes_per_class: int = 0,
    iou_threshold: float = 0.0,
    score_threshold: float | None = None,
    center_point_box: bool = False,
) -> StructInfo:
    """Rows ``(n, class, b)``: the boxes of each class that overlap none of a higher score by more.

    `boxes` of shape (n, b, 4) are ``(y1, x1, y2, x2)``, of corners in any order, or
    ``(x, y, width, height)`` of the center with `center_point_box`; `scores` are of shape
    (n, class, b).  Scores are in descending order, above `score_threshold`; of equal ones the first
    box comes first.  `iou_threshold` is of the intersection over the union.
    """
    subject = f"R.image.non_max_suppression of {boxes} and {scores}"
    for info, what in ((boxes, "boxes"), (scores, "scores")):
        check_floating(subject, info)
        check_rank(subject, what, info, 3)
    if boxes.dims is not None and scores.dims is not None:
        (batch, count, corners), (images, _, scored) = boxes.dims, scores.dims
        wrong = ((batch, images), (count, scored), (corners, 4))
        if any(differ(a, b) for a, b in wrong):
            raise IllTyped(
                f"{subject}: needs boxes of shape (n, b, 4), and scores of (n, class, b)"
            )
    return tensor(None, "int64", 2)


def check_one_of(subject: str, what: str, value: str, known: tuple[str, ...]) -> None:
    """Refuse a `value` that is none of those `known`."""
    if value not in known:
        raise IllTyped(f"{subject}: {what} is {value!r}, needs one of {', '.join(known)}")
