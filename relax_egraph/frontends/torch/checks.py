"""Sizes that only the run knows, and what the run must check."""

from collections.abc import Sequence

from relax_egraph.frontends.building.builder import info_of
from relax_egraph.frontends.building.dim_tensors import sides
from relax_egraph.frontends.torch.node import Node
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, ShapeExpr
from relax_egraph.ir.struct_info import ShapeStructInfo, tensor


def checked_indices(node: Node, indices: Expr, extent: Dim, *, from_end: bool = True) -> Expr:
    """`indices`, checked at run time to be inside of an axis of `extent`.

    Negative ones are inside if they count `from_end`.
    """
    operator = node.op.split(".")[1]
    shape = ShapeExpr((extent,))
    return node.emit(
        "check_indices", indices, shape, axes=(0,), operator=operator, from_end=from_end
    )


def with_shape(node: Node, value: Expr, shape: Sequence[Dim]) -> Expr:
    """`value`, checked at run time to be of `shape`, whose new symbols this binds."""
    info = info_of(value)
    if info.dims == tuple(shape):
        return value
    return node.bb.emit_match_cast(value, tensor(tuple(shape), info.dtype), node.name)


def bind_size(node: Node, number: Expr, size: Dim) -> None:
    """Check at run time that `number`, a tensor of one element, is `size`; binds a new symbol.

    A negative number is refused.
    """
    flat = node.reshaped(node.cast(number, "int64"), (1,))
    shape = node.emit("tensor_to_shape", flat)
    node.bb.emit_match_cast(shape, ShapeStructInfo((size,)), node.name)


def require_nonnegative(node: Node, value: Dim, refusal: str) -> None:
    """Check at run time that `value` is 0 or more, unless that is proven."""
    if node.bb.is_nonnegative(value):
        return
    less, more = sides(value)
    info = ShapeStructInfo((more,))
    node.bb.emit_match_cast(ShapeExpr((dims.maximum(less, more),)), info, refusal=refusal)
    node.bb.assume_nonnegative(value)


def require_zero(node: Node, value: Dim, refusal: str) -> None:
    """Check at run time that `value` is 0, unless that is proven."""
    if not dims.equal(value, 0):
        less, more = sides(value)
        node.bb.emit_match_cast(ShapeExpr((less,)), ShapeStructInfo((more,)), refusal=refusal)


def require(node: Node, condition: Expr, refusal: str) -> None:
    """Check at run time that `condition`, a tensor of one element, is true."""
    flag = node.symbols.new("flag")
    bind_size(node, node.cast(condition, "bool"), flag)
    require_zero(node, dims.sub(flag, 1), refusal)
