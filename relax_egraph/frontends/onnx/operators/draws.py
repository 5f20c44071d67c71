"""Tensors of random numbers.

A model is a function: it draws the same numbers in each run and on every machine.  Number ``i`` of
a node is a hash of ``i`` and of the node's key (the finalizer of splitmix64, Steele, Lea and Flood
2014), so numbers can be computed in any order.  The key is computed from the attribute `seed`, or
without it from the name of the node's output, so that nodes differ.
"""

import math
import struct
from hashlib import blake2b

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.expr import Constant, Expr, PrimValue, ShapeExpr, const
from relax_egraph.ir.struct_info import Shape

_STEP = 0x9E3779B97F4A7C15
_ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))


@converts("RandomUniform", "RandomUniformLike")
def uniform(node: Node) -> Expr:
    """Uniform numbers in [`low`, `high`)."""
    shape, dtype = _shape(node), _dtype(node)
    low, high = (node.attrs.number(name) for name in ("low", "high"))
    x = drawn(node, shape, _wide(dtype))
    spread = node.emit("multiply", x, node.scalar(high - low, dtype_of(x)))
    return node.cast(node.emit("add", spread, node.scalar(low, dtype_of(x))), dtype)


@converts("RandomNormal", "RandomNormalLike")
def normal(node: Node) -> Expr:
    """Normally distributed numbers, by the transform of Box and Muller (1958)."""
    shape, dtype = _shape(node), _dtype(node)
    wide = _wide(dtype)
    one = node.scalar(1, wide)
    above = node.emit("subtract", one, drawn(node, shape, wide))
    turn = node.emit("multiply", drawn(node, shape, wide, 1), node.scalar(2 * math.pi, wide))
    size = node.emit("multiply", node.emit("log", above), node.scalar(-2, wide))
    x = node.emit("multiply", node.emit("sqrt", size), node.emit("cos", turn))
    spread = node.emit("multiply", x, node.scalar(node.attrs.number("scale"), wide))
    return node.cast(node.emit("add", spread, node.scalar(node.attrs.number("mean"), wide)), dtype)


@converts("Bernoulli")
def bernoulli(node: Node) -> Expr:
    """1 with the probability in the operand, else 0."""
    dtype = node.dtype(0)
    has_dtype = node.attrs.has("dtype")
    wide = _wide(dtype)
    x = drawn(node, node.shape(0), wide)
    hit = node.emit("less", x, node.cast(node[0], wide))
    return node.emit("astype", hit, dtype=node.attrs.dtype("dtype") if has_dtype else dtype)


@converts("Multinomial")
def multinomial(node: Node) -> Expr:
    """Classes drawn by the logarithms of their probabilities, which need not be normalised."""
    batch, classes = node.shape(0)
    count = node.attrs.integer("sample_size")
    if count < 0 or classes == 0:
        raise ModelError(f"it draws {count} of {dims.text(classes)} classes")
    shares = node.emit("nn.softmax", node.cast(node[0], "float64"), axis=1)
    ends = node.emit("expand_dims", node.emit("cumsum", shares, axis=1), axis=1)
    last = ShapeExpr((dims.sub(classes, 1),))
    cut = node.emit("strided_slice", ends, ShapeExpr((0,)), last, axes=(2,))
    x = node.emit("expand_dims", drawn(node, (batch, count), "float64"), axis=2)
    passed = node.emit("astype", node.emit("greater_equal", x, cut), dtype="int64")
    return node.cast(node.emit("sum", passed, axis=2), node.attrs.dtype("dtype"))


def drawn(node: Node, shape: Shape, dtype: str, stream: int = 0) -> Expr:
    """Uniform numbers in [0, 1) with as many bits as `dtype` has."""
    bits = 53 if dtype == "float64" else 24
    place = node.emit("arange", PrimValue(dims.product(shape)), dtype="int64")
    step = node.emit("multiply", node.cast(place, "uint64"), _whole(_STEP))
    x = node.emit("add", step, _whole(_key(node, stream)))
    for shift, factor in _ROUNDS:
        x = node.emit("bitwise_xor", x, node.emit("right_shift", x, _whole(shift)))
        if factor != 1:
            x = node.emit("multiply", x, _whole(factor))
    highest = node.emit("right_shift", x, _whole(64 - bits))
    part = node.emit("multiply", node.cast(highest, dtype), node.scalar(2.0**-bits, dtype))
    return node.emit("reshape", part, ShapeExpr(shape))


def _key(node: Node, stream: int) -> int:
    if node.attrs.has("seed"):
        source = struct.pack("<d", node.attrs.number("seed"))
    else:
        source = node.outputs[0].encode()
    return int.from_bytes(blake2b(source, digest_size=8, salt=bytes([stream])).digest(), "little")


def _whole(number: int) -> Constant:
    return const(number, "uint64")


def _shape(node: Node) -> Shape:
    """The shape from an attribute, or that of the operand."""
    if not node.op.endswith("Like"):
        shape = node.attrs.integers("shape")
        if any(extent < 0 for extent in shape):
            raise ModelError(f"its shape is {list(shape)}")
        return shape
    return node.shape(0)


def _dtype(node: Node) -> str:
    like = node.op.endswith("Like") and not node.attrs.has("dtype")
    dtype = node.dtype(0) if like else node.attrs.dtype("dtype")
    if not is_float(dtype):
        raise ModelError(f"it draws numbers of {dtype}, needs floats")
    return dtype


def _wide(dtype: str) -> str:
    return "float64" if dtype == "float64" else "float32"
