"""Elementwise operators that map to one of ours."""

from collections.abc import Mapping
from functools import reduce

from relax_egraph.errors import ModelError
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.operators.alignment import aligned
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir.expr import Expr

_SAME: Mapping[str, str] = {
    "Abs": "abs",
    "Acos": "acos",
    "Acosh": "acosh",
    "Asin": "asin",
    "Asinh": "asinh",
    "Atan": "atan",
    "Atanh": "atanh",
    "BitwiseAnd": "bitwise_and",
    "BitwiseNot": "bitwise_not",
    "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor",
    "Ceil": "ceil",
    "Cos": "cos",
    "Cosh": "cosh",
    "Erf": "erf",
    "Exp": "exp",
    "Floor": "floor",
    "IsNaN": "isnan",
    "Log": "log",
    "Neg": "negative",
    "Not": "logical_not",
    "Round": "round",
    "Sigmoid": "sigmoid",
    "Sign": "sign",
    "Sin": "sin",
    "Sinh": "sinh",
    "Sqrt": "sqrt",
    "Tan": "tan",
    "Tanh": "tanh",
    "Where": "where",
}
"""Operators that are one of ours by another name."""


@converts(*_SAME)
def same(node: Node) -> Expr:
    """Our operator on the same operands."""
    return node.emit(_SAME[node.op], *node.all())


_OF_TWO: Mapping[str, str] = {
    "Add": "add",
    "And": "logical_and",
    "Equal": "equal",
    "Greater": "greater",
    "GreaterOrEqual": "greater_equal",
    "Less": "less",
    "LessOrEqual": "less_equal",
    "Mul": "multiply",
    "Or": "logical_or",
    "Sub": "subtract",
    "Xor": "logical_xor",
}


@converts(*_OF_TWO)
def of_two(node: Node) -> Expr:
    """An operator of two operands that broadcast."""
    return node.emit(_OF_TWO[node.op], *aligned(node))


_OF_MANY: Mapping[str, str] = {"Max": "maximum", "Mean": "add", "Min": "minimum", "Sum": "add"}


@converts(*_OF_MANY)
def of_many(node: Node) -> Expr:
    """An operator of two operands, folded from the left; a mean is a sum that is divided."""
    leading, *others = node.all()
    result = reduce(lambda a, b: node.emit(_OF_MANY[node.op], a, b), others, leading)
    if node.op != "Mean" or not others:
        return result
    return node.emit("divide", result, node.scalar(1 + len(others), node.dtype(0)))


@converts("Reciprocal")
def reciprocal(node: Node) -> Expr:
    """``1 / x``."""
    return node.emit("divide", node.scalar(1, node.dtype(0)), node[0])


@converts("BitShift")
def shift(node: Node) -> Expr:
    """A shift of bits in one direction."""
    direction = node.attrs.text("direction")
    if direction not in ("LEFT", "RIGHT"):
        raise ModelError(f"its direction is {direction!r}, needs 'LEFT' or 'RIGHT'")
    return node.emit(f"{direction.lower()}_shift", node[0], node[1])


@converts("IsInf")
def is_infinite(node: Node) -> Expr:
    """Whether elements are infinite, of the selected signs."""
    positive, negative = (
        node.attrs.schema_default(f"detect_{sign}") != 0 for sign in ("positive", "negative")
    )
    if positive and negative:
        return node.emit("isinf", node[0])
    if not positive and not negative:
        return node.emit("zeros_like", node[0], dtype="bool")
    infinity = node.scalar(float("inf" if positive else "-inf"), node.dtype(0))
    return node.emit("equal", node[0], infinity)


@converts("Identity")
def identity(node: Node) -> Expr:
    """The operand itself."""
    return node[0]


@converts("Cast")
def cast(node: Node) -> Expr:
    """A cast; its options for rounding and saturation concern unsupported dtypes."""
    return node.cast(node[0], node.attrs.dtype("to"))


@converts("CastLike")
def cast_like(node: Node) -> Expr:
    """A cast to the dtype of another tensor."""
    return node.cast(node[0], node.dtype(1))
