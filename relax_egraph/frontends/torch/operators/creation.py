"""Tensors of one value and of a sequence, and casts."""

from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.expr import Expr, ShapeExpr


@converts(
    "aten.full.default",
    "aten.full_like.default",
    "aten.fill.Scalar",
    "aten.fill.Tensor",
    "aten.new_full.default",
)
def full(node: Node) -> Expr:
    """One value everywhere."""
    name = "value" if ".fill." in node.op else "fill_value"
    return filled(node, node.operand(name, node.out_dtype))


@converts("aten.scalar_tensor.default")
def scalar_tensor(node: Node) -> Expr:
    """A number as a tensor."""
    return node.operand("s", node.out_dtype)


@converts(
    "aten.empty.memory_format",
    "aten.empty_strided.default",
    "aten.empty_like.default",
    "aten.new_empty.default",
    "aten.new_empty_strided.default",
    "aten.empty_permuted.default",
)
def empty(node: Node) -> Expr:
    """Elements that mean nothing: zeros."""
    return filled(node, node.scalar(0, node.out_dtype))


def filled(node: Node, value: Expr) -> Expr:
    """`value`, of rank 0, everywhere in the shape of the result."""
    return node.emit("full", ShapeExpr(node.out_shape), value, dtype=node.out_dtype)


@converts(
    "aten.arange.start_step", "aten.arange.start", "aten.arange.default", "prims.iota.default"
)
def arange(node: Node) -> Expr:
    """``start + i · step``; floats are computed in float64."""
    dtype = node.out_dtype
    wide = "float64" if is_float(dtype) else "int64"
    start, step = node.arguments.get("start", 0), node.arguments.get("step", 1)
    result = node.cast(node.sequence(node.out_shape[0]), wide)
    if step != 1:
        result = node.emit("multiply", result, node.as_tensor(step, wide))
    if start != 0:
        result = node.emit("add", result, node.as_tensor(start, wide))
    return node.cast(result, dtype)


@converts("aten._to_copy.default", "prims.convert_element_type.default", "aten.to.dtype")
def converted(node: Node) -> Expr:
    """The operand in another dtype."""
    name = "a" if node.op.startswith("prims.") else "self"
    return node.operand(name, node.out_dtype)
