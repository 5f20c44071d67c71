"""Sorting along an axis."""

from collections.abc import Sequence

import numpy as np

from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.operators.reductions import countable
from relax_egraph.frontends.torch.registry import Result, converts
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.expr import Expr, ShapeExpr


@converts("aten.sort.default", "aten.sort.stable")
def sort(node: Node) -> list[Expr]:
    """The elements in order along an axis, and their indices; NaN is the greatest."""
    values, indices = _sorted(node, node.flag("descending"))
    return [node.cast(values, node.out_dtype), indices]


@converts("aten.topk.default")
def topk(node: Node) -> list[Expr]:
    """The `k` greatest or least elements along an axis, and their indices; NaN is the greatest."""
    rank, k, largest = node.rank("self"), node.dim("k"), node.flag("largest")
    if rank == 0 or not isinstance(k, int) or k < 1:
        return _first(node, _sorted(node, largest), k)
    x, axis = countable(node), node.axis("dim", rank)
    settings = {"k": k, "axis": axis, "dtype": "int64", "largest": largest}
    if not largest or not is_float(node.dtype("self")):
        values, indices = node.fields(node.emit("topk", x, **settings))
        return [node.cast(values, node.out_dtype), indices]
    infinity = node.scalar(float("inf"), node.dtype("self"))
    key = node.emit("where", node.emit("isnan", x), infinity, x)
    indices = node.emit("topk", key, ret_type="indices", **settings)
    return [node.emit("gather_elements", x, indices, axis=axis), indices]


@converts("aten.kthvalue.default")
def kth_value(node: Node) -> list[Expr]:
    """The `k` th least element along an axis, NaN the greatest, and its index."""
    values, indices = _sorted(node, descending=False)
    return _picked(node, values, indices, dims.sub(node.dim("k"), 1))


@converts("aten.median.default", "aten.median.dim")
def median(node: Node) -> Result:
    """The lower of the middle elements, of all or along an axis, with its index; NaN if one is."""
    x, along = node["self"], node.op == "aten.median.dim"
    if not along:
        x = node.reshaped(x, (dims.product(node.shape("self")),))
    elif node.rank("self") == 0:
        x = node.reshaped(x, (1,))
    axis = node.axis("dim", node.rank("self")) if along else 0
    keepdims = bool(node.arguments.get("keepdim")) and node.rank("self") > 0
    values, indices = node.fields(node.emit("median", x, axis=(axis,), keepdims=keepdims))
    if is_float(node.dtype("self")):
        unknown = node.cast(node.emit("isnan", x), "uint8")
        first = node.emit("argmax", unknown, axis=axis, keepdims=keepdims)
        lost = node.cast(node.emit("max", unknown, axis=(axis,), keepdims=keepdims), "bool")
        nan = node.scalar(float("nan"), node.dtype("self"))
        values = node.emit("where", lost, nan, values)
        indices = node.emit("where", lost, first, indices)
    return [values, indices] if along else values


@converts("aten.nanmedian.default", "aten.nanmedian.dim")
def nan_median(node: Node) -> Result:
    """The lower of the middle elements but NaN, which is the median only of nothing else."""
    x, along = node["self"], node.op == "aten.nanmedian.dim"
    rank = node.rank("self")
    if not along or rank == 0:
        x = node.reshaped(x, (dims.product(node.shape("self")),))
    axis = node.axis("dim", rank) if along else 0
    dtype = node.dtype("self")
    if is_float(dtype):
        known = node.cast(node.emit("logical_not", node.emit("isnan", x)), "int64")
    else:
        known = node.emit("ones_like", x, dtype="int64")
    count = node.emit("sum", known, axis=(axis,), keepdims=True)
    below = node.emit("subtract", count, node.scalar(1, "int64"))
    place = node.emit("floor_divide", below, node.scalar(2, "int64"))
    place = node.emit("maximum", place, node.scalar(0, "int64"))
    settings = {"k": 0, "axis": axis, "dtype": "int64", "largest": False}
    both = node.fields(node.emit("topk", x, **settings))  # NaN is last
    picked = (node.emit("gather_elements", v, place, axis=axis) for v in both)
    kept = [node.reshaped(v, node.out_shape) for v in picked]
    return kept if along else kept[0]


@converts("aten.mode.default")
def mode(node: Node) -> list[Expr]:
    """The least of the most frequent elements along an axis, and the first place that has it."""
    emit, rank, x = node.emit, node.rank("self"), countable(node)
    if rank == 0:
        return [node["self"], emit("zeros_like", x, dtype="int64")]
    axis = node.axis("dim", rank)
    along = {"axis": (axis,), "keepdims": True}
    pairs = emit("equal", emit("expand_dims", x, axis=axis + 1), emit("expand_dims", x, axis=axis))
    times = emit("sum", node.cast(pairs, "int64"), axis=(axis + 1,))
    is_most = emit("equal", times, emit("max", times, **along))
    dtype = dtype_of(x)
    most = float("inf") if is_float(dtype) else int(np.iinfo(dtype).max)
    beyond = node.scalar(most, dtype)
    least = emit("min", emit("where", is_most, x, beyond), **along)
    is_found = emit("logical_and", is_most, emit("equal", x, least))
    place = emit("argmax", node.cast(is_found, "uint8"), axis=axis, keepdims=True)
    value = emit("gather_elements", x, place, axis=axis)
    return [
        node.cast(node.reshaped(value, node.out_shape), node.out_dtype),
        node.reshaped(place, node.out_shape),
    ]


def _picked(node: Node, values: Expr, indices: Expr, place: Dim) -> list[Expr]:
    """The elements at `place` along the axis, which goes, or stays as one."""
    if node.rank("self"):
        axes = (node.axis("dim", node.rank("self")),)
        begin, end = ShapeExpr((place,)), ShapeExpr((dims.add(place, 1),))
        values, indices = (
            node.reshaped(node.emit("strided_slice", x, begin, end, axes=axes), node.out_shape)
            for x in (values, indices)
        )
    return [node.cast(values, node.out_dtype), indices]


def _first(node: Node, both: Sequence[Expr], k: Dim) -> list[Expr]:
    """The first `k` along the axis of the values and the indices."""
    rank = node.rank("self")
    if rank:
        axes, begin, end = (node.axis("dim", rank),), ShapeExpr((0,)), ShapeExpr((k,))
        both = [node.emit("strided_slice", x, begin, end, axes=axes) for x in both]
    return [node.cast(both[0], node.out_dtype), both[1]]


def _sorted(node: Node, descending: bool) -> tuple[Expr, Expr]:
    """The elements in stable order, and their indices.

    Descending floats are ascending ones from the end, since our order has NaN last either way.
    """
    x, rank = countable(node), node.rank("self")
    if rank == 0:
        return x, node.emit("zeros_like", x, dtype="int64")
    axis = node.axis("dim", rank)
    reverse = descending and is_float(node.dtype("self"))
    if reverse:
        x = node.emit("flip", x, axis=axis)
    settings = {"k": 0, "axis": axis, "dtype": "int64", "largest": descending and not reverse}
    values, indices = node.fields(node.emit("topk", x, **settings))
    if not reverse:
        return values, indices
    values, indices = (node.emit("flip", v, axis=axis) for v in (values, indices))
    last = node.as_tensor(dims.sub(node.shape("self")[axis], 1), "int64")
    return values, node.emit("subtract", last, indices)
