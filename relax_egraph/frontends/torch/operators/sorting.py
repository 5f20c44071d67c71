"""Sorting along an axis."""

from collections.abc import Sequence

from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.operators.reductions import countable
from relax_egraph.frontends.torch.registry import converts
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
