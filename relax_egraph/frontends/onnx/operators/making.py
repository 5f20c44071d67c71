"""Creation of tensors, from constants or from the shape of another tensor."""

import numpy as np

from relax_egraph.errors import ModelError
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir.expr import Constant, Expr, PrimValue, ShapeExpr, const
from relax_egraph.ir.struct_info import tensor


@converts("Constant")
def constant(node: Node) -> Expr:
    """The constant in one of the attributes."""
    attrs = node.attrs
    if attrs.has("value"):
        return Constant(node.frame.model.store.array(attrs.tensor("value")))
    for name, dtype in (
        *(("value_int", "int64"), ("value_ints", "int64")),
        *(("value_float", "float32"), ("value_floats", "float32")),
    ):
        if attrs.has(name):
            return Constant(np.asarray(attrs.schema_default(name), dtype))
    raise ModelError("it has no value that is a tensor of numbers")


@converts("Shape")
def shape(node: Node) -> Expr:
    """The extents from `start` to `end` of a tensor whose shape is known only at run time."""
    extents = node.emit("shape_to_tensor", node.emit("shape_of", node[0]))
    start, end = node.attrs.schema_default("start"), node.attrs.schema_default("end")
    if not start and end is None:
        return extents
    begin, stop, _ = slice(start, end).indices(node.rank(0))
    cut = (ShapeExpr((begin,)), ShapeExpr((max(begin, stop),)))
    return node.emit("strided_slice", extents, *cut, axes=(0,))


@converts("Size")
def size(node: Node) -> Expr:
    """The number of elements of a tensor."""
    return node.emit("size", node[0])


@converts("ConstantOfShape")
def constant_of_shape(node: Node) -> Expr:
    """A tensor filled with one value."""
    value = const(0.0, "float32")
    if node.attrs.has("value"):
        array = node.frame.model.store.array(node.attrs.tensor("value"))
        value = Constant(array.reshape(()))
    return node.emit("full", node.as_shape(0), value)


@converts("Range")
def range_(node: Node) -> Expr:
    """Numbers from a start, by steps, up to a limit."""
    dtype = node.dtype(0)
    numbers = [_number(node, place, dtype) for place in range(3)]
    values = [n for n in numbers if n is not None]
    if len(values) == len(numbers):
        return node.emit("arange", *values, dtype=dtype)
    return node.emit_late("arange", *node.all(), dtype=dtype, out=tensor(None, dtype, 1))


def _number(node: Node, place: int, dtype: str) -> PrimValue | None:
    """Operand `place` as a Python number, if it is constant."""
    elements, constant_ = node.elements(place), node.constant(place)
    if elements is not None:
        return PrimValue(elements.dims[0], "int64")
    if constant_ is not None:
        return PrimValue(float(constant_.data.item()), "float64")
    return None


@converts("EyeLike")
def eye_like(node: Node) -> Expr:
    """Ones on a diagonal."""
    dtype = node.attrs.dtype("dtype") if node.attrs.has("dtype") else node.dtype(0)
    return node.emit("eye_like", node[0], PrimValue(node.attrs.integer("k")), dtype=dtype)


@converts("Trilu")
def triangle(node: Node) -> Expr:
    """The elements on one side of a diagonal, and 0 on the other."""
    name = "triu" if node.attrs.integer("upper") else "tril"
    if not node.has(1):
        return node.emit(name, node[0])
    known = node.integers(1)
    if known is not None:
        return node.emit(name, node[0], PrimValue(known[0]))
    return node.emit_late(name, node[0], node[1], out=node.info(0))


@converts("OneHot")
def one_hot(node: Node) -> Expr:
    """One value where the index along a new axis equals the operand, another value elsewhere."""
    indices = node.cast(node[0], "int64")
    axis = node.normalized(node.attrs.integer("axis"), node.rank(0) + 1)
    depth = node.elements(1)
    if depth is not None:
        along = node.emit("arange", PrimValue(depth.dims[0]), dtype="int64")
        count = node.emit("size", along)
    else:
        count = node.emit("reshape", node.cast(node[1], "int64"), ShapeExpr(()))
        zero, one = node.scalar(0, "int64"), node.scalar(1, "int64")
        out = tensor(None, "int64", 1)
        along = node.emit_late("arange", zero, count, one, dtype="int64", out=out)
    behind = node.rank(0) - axis
    if behind:
        along = node.emit("expand_dims", along, axis=tuple(range(1, behind + 1)))
    negative = node.emit("less", indices, node.scalar(0, "int64"))
    counted = node.emit("where", negative, node.emit("add", indices, count), indices)
    is_on = node.emit("equal", node.emit("expand_dims", counted, axis=axis), along)
    off, on = (node.emit("take", node[2], node.scalar(place, "int64"), axis=0) for place in (0, 1))
    return node.emit("where", is_on, on, off)
