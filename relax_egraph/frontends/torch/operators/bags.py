"""Bags of rows of a table."""

from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.building.positions import counted
from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir.expr import Expr, ShapeExpr

_SUM, _MEAN, _MAX = 0, 1, 2


@converts("aten._embedding_bag.default", "aten._embedding_bag_forward_only.default")
def embedding_bag(node: Node) -> tuple[Expr | None, ...]:
    """The sum, mean or maximum of the rows of each bag; 0 of an empty one.

    A bag has the indices from its offset to that of the next one.  What training keeps beside it
    has no converter.
    """
    emit, dtype = node.emit, node.dtype("weight")
    indices, offsets, mode = node["indices"], node["offsets"], node.integer("mode")
    bags, features = node.out_shape
    (count,) = node.shape("indices")
    index = dtype_of(offsets)
    if node.flag("include_last_offset"):
        offsets = emit("strided_slice", offsets, ShapeExpr((0,)), ShapeExpr((bags,)), axes=(0,))
    begun = emit(
        "less_equal", emit("expand_dims", offsets, axis=1), counted(node, count, 1, 2, index)
    )
    bag = emit("subtract", emit("sum", node.cast(begun, "int64"), axis=0), node.scalar(1, "int64"))
    padding = node.integer("padding_idx")
    counts = emit("not_equal", indices, node.scalar(padding, node.dtype("indices")))
    kept = emit("expand_dims", counts, axis=1)
    rows = emit("take", node["weight"], indices, axis=0)
    if node.has("per_sample_weights"):
        scale = emit("expand_dims", node["per_sample_weights"], axis=1)
        rows = emit("multiply", rows, scale)
    zero = node.scalar(0, dtype)
    sizes = _summed(node, bag, node.cast(counts, dtype), ShapeExpr((bags,)), "add", zero)
    sizes = emit("expand_dims", sizes, axis=1)
    shape = ShapeExpr((bags, features))
    if mode == _MAX:
        least = node.scalar(float("-inf"), dtype)
        rows = emit("where", kept, rows, least)
        greatest = _summed(node, bag, rows, shape, "max", least)
        out = emit("where", emit("equal", sizes, zero), zero, greatest)
    else:
        out = _summed(node, bag, emit("where", kept, rows, zero), shape, "add", zero)
        if mode == _MEAN:
            out = emit("divide", out, emit("maximum", sizes, node.scalar(1, dtype)))
    return out, None, None, None


def _summed(
    node: Node, bag: Expr, rows: Expr, shape: ShapeExpr, reduction: str, start: Expr
) -> Expr:
    """`rows` gathered at their bags, from `start` on."""
    blank = node.emit("full", shape, start, dtype=dtype_of(rows))
    places = node.emit("expand_dims", bag, axis=1)
    return node.emit("scatter_nd", blank, places, rows, reduction=reduction)
