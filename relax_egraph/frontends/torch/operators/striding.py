"""Reads and writes by strides over the storage of a tensor, which is taken to be all of it."""

from collections.abc import Sequence

import torch

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import shape_of
from relax_egraph.frontends.building.positions import counted
from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, ShapeExpr


@converts("aten.as_strided.default")
def as_strided(node: Node) -> Expr:
    """The elements of the storage at ``offset + Σₖ iₖ · strideₖ``."""
    order = _storage_order(node, "self")
    if 0 in node.out_shape:
        return node.emit("zeros", ShapeExpr(node.out_shape), dtype=node.out_dtype)
    storage = node.emit("flatten", node.emit("permute_dims", node["self"], axes=order))
    return node.emit("take", storage, _places(node), axis=0)


@converts("aten.as_strided_scatter.default", "prims.as_strided_scatter.default")
def as_strided_scatter(node: Node) -> Expr:
    """The operand with those elements of its storage written."""
    name = "self" if "self" in node.arguments else "input"
    order = _storage_order(node, name)
    source = node.operand("src", node.out_dtype)
    if 0 in shape_of(source):
        return node[name]
    turned = node.emit("permute_dims", node[name], axes=order)
    storage = node.emit("flatten", turned)
    places = node.emit("flatten", _places(node))
    values = node.emit("flatten", source)
    written = node.emit("scatter_elements", storage, places, values, axis=0)
    back = tuple(order.index(k) for k in range(len(order)))
    return node.emit("permute_dims", node.reshaped(written, shape_of(turned)), axes=back)


@converts("aten.resize.default")
def resize(node: Node) -> Expr:
    """The first elements of the storage in another shape."""
    count, have = dims.product(node.out_shape), dims.product(node.shape("self"))
    if not dims.prove_ge(have, count):
        raise ModelError("it has more elements than its operand, which have no value")
    order = _storage_order(node, "self")
    storage = node.emit("flatten", node.emit("permute_dims", node["self"], axes=order))
    begin, end = ShapeExpr((0,)), ShapeExpr((count,))
    return node.reshaped(node.emit("strided_slice", storage, begin, end, axes=(0,)), node.out_shape)


def _storage_order(node: Node, name: str) -> tuple[int, ...]:
    """The axes of the tensor `name` in the order in which its elements lie in its storage."""
    x = node.metas[name]
    assert isinstance(x, torch.Tensor)
    strides = [node.symbols.dim(s) for s in x.stride()]
    shape = node.shape(name)
    spread = [k for k, extent in enumerate(shape) if extent != 1]
    order: list[int] = []
    step: Dim = 1
    while spread:
        axis = next((k for k in spread if dims.equal(strides[k], step)), None)
        if axis is None:
            raise ModelError("it reads the storage of a tensor that is not all of the storage")
        spread.remove(axis)
        order.insert(0, axis)
        step = dims.mul(step, shape[axis])
    if x.storage_offset() != 0:
        raise ModelError("it reads the storage of a tensor that begins inside of the storage")
    return (*(k for k in range(len(shape)) if k not in order), *order)


def _places(node: Node) -> Expr:
    """The place in the storage of each element."""
    size: Sequence[Dim] = node.sizes("size")
    strides, offset = node.sizes("stride"), node.arguments.get("storage_offset") or 0
    places = node.as_tensor(offset, "int64")
    for axis, (extent, stride) in enumerate(zip(size, strides, strict=True)):
        steps = counted(node, extent, axis, len(size))
        place = node.emit("multiply", steps, node.as_tensor(stride, "int64"))
        places = node.emit("add", places, place)
    return places
