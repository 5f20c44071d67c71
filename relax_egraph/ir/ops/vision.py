"""Regions of images, in the namespace ``R.vision``: what detectors do with boxes.

Regions of interest are rows ``(image, x1, y1, x2, y2)``, in units of `spatial_scale` pixels.
"""

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.points import POOLED, check_one_of
from relax_egraph.ir.ops.window import check_floating, check_rank
from relax_egraph.ir.requirements import differ
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, TupleStructInfo, tensor

IMAGES = ("NCHW", "NHWC")
"""The layouts of images."""


@op("vision")
def roi_align(
    data: TensorStructInfo,
    rois: TensorStructInfo,
    *,
    pooled_size: tuple[int, ...],
    spatial_scale: float,
    sample_ratio: int = -1,
    aligned: bool = False,
    layout: str = "NCHW",
    mode: str = "avg",
) -> StructInfo:
    """``out[r, c, i, j]``: the mean or the maximum of an image at points in bin (i, j) of region r.

    Pixels have their centers at whole numbers.  A region has an extent of 1 at least, unless
    `aligned`.  A bin has `sample_ratio` points along each axis, or if that is below 1, one for each
    pixel begun.  Points more than a pixel outside are 0.  Images of no number are clamped.
    """
    subject = f"R.vision.roi_align of {data} and {rois}"
    check_one_of(subject, "mode", mode, POOLED)
    return _regions(subject, data, rois, pooled_size, layout)


@op("vision")
def roi_pool(
    data: TensorStructInfo,
    rois: TensorStructInfo,
    *,
    pooled_size: tuple[int, ...],
    spatial_scale: float,
    layout: str = "NCHW",
) -> StructInfo:
    """``out[r, c, i, j]``: the greatest pixel in bin (i, j) of region r, 0 of no pixel.

    Borders of regions are rounded to pixels, halves up; bins overlap where they share a pixel.  A
    region with a border that is infinite or NaN has no pixels.
    """
    subject = f"R.vision.roi_pool of {data} and {rois}"
    return _regions(subject, data, rois, pooled_size, layout)


def _regions(
    subject: str,
    data: TensorStructInfo,
    rois: TensorStructInfo,
    pooled_size: tuple[int, ...],
    layout: str,
) -> StructInfo:
    check_one_of(subject, "layout", layout, IMAGES)
    if len(pooled_size) not in (1, 2) or min(pooled_size) < 1:
        sizes = list(pooled_size)
        raise IllTyped(f"{subject}: pooled_size is {sizes}, needs 1 or 2 values of 1 or more")
    check_floating(subject, data)
    check_floating(subject, rois)
    check_rank(subject, "data", data, 4)
    check_rank(subject, "regions", rois, 2)
    if rois.dims is not None and differ(rois.dims[1], 5):
        raise IllTyped(f"{subject}: needs regions of shape (r, 5)")
    if data.dims is None or rois.dims is None:
        return tensor(None, data.dtype, 4)
    size = (pooled_size[0], pooled_size[-1])
    if layout == "NCHW":
        return tensor((rois.dims[0], data.dims[1], *size), data.dtype)
    return tensor((rois.dims[0], *size, data.dims[3]), data.dtype)


@op("vision")
def multibox_transform_loc(
    cls_pred: TensorStructInfo,
    loc_pred: TensorStructInfo,
    anchor: TensorStructInfo,
    *,
    clip: bool = False,
    threshold: float = 0.0,
    variances: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0),
    keep_background: bool = True,
) -> StructInfo:
    """Boxes (n, b, 4) and scores (n, class, b) of offsets from anchors and of logits.

    `loc_pred` of shape (n, 4b) has ``(x, y, w, h)`` for each anchor, which scaled by `variances`
    move the center of an anchor ``(x1, y1, x2, y2)`` of shape (1, b, 4) by its extents, and scale
    these exponentially.  A box is ``(y1, x1, y2, x2)``, with `clip` within 0..1.  Scores are the
    softmax over classes, 0 below `threshold`, and without `keep_background` 0 of class 0.
    """
    subject = f"R.vision.multibox_transform_loc of {cls_pred}, {loc_pred} and {anchor}"
    if len(variances) != 4:
        raise IllTyped(f"{subject}: variances is {list(variances)}, needs 4 values")
    operands = ((cls_pred, "scores", 3), (loc_pred, "offsets", 2), (anchor, "anchors", 3))
    for info, what, ndim in operands:
        check_floating(subject, info)
        check_rank(subject, what, info, ndim)
    if len({info.dtype for info, _, _ in operands} - {None}) > 1:
        raise IllTyped(f"{subject}: needs operands of one dtype")
    if cls_pred.dims is None:
        return TupleStructInfo((tensor(None, cls_pred.dtype, 3),) * 2)
    images, classes, boxes = cls_pred.dims
    wanted: tuple[tuple[Dim, ...], ...] = ((images, dims.mul(boxes, 4)), (1, boxes, 4))
    for info, shape in zip((loc_pred, anchor), wanted, strict=True):
        if info.dims is not None and any(map(differ, info.dims, shape)):
            raise IllTyped(f"{subject}: needs offsets of shape (n, 4b), and anchors of (1, b, 4)")
    dtype = cls_pred.dtype
    shapes = ((images, boxes, 4), (images, classes, boxes))
    return TupleStructInfo(tuple(tensor(shape, dtype) for shape in shapes))
