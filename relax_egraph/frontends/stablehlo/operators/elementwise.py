"""Elementwise arithmetic, comparisons and choices."""

from collections.abc import Mapping

from jaxlib.mlir.dialects import stablehlo

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.stablehlo.node import Node, like, number_of
from relax_egraph.frontends.stablehlo.registry import converts
from relax_egraph.ir.dtypes import is_float, is_signed
from relax_egraph.ir.expr import Constant, Expr

_OF_ONE: Mapping[str, str] = {
    "abs": "abs",
    "ceil": "ceil",
    "cosine": "cos",
    "exponential": "exp",
    "floor": "floor",
    "is_finite": "isfinite",
    "log": "log",
    "logistic": "sigmoid",
    "negate": "negative",
    "round_nearest_even": "round",
    "rsqrt": "rsqrt",
    "sign": "sign",
    "sine": "sin",
    "sqrt": "sqrt",
    "tan": "tan",
    "tanh": "tanh",
}
"""Our operators by operation, of one operand."""

_OF_TWO: Mapping[str, tuple[str, str]] = {
    "add": ("add", "logical_or"),
    "subtract": ("subtract", "logical_xor"),
    "multiply": ("multiply", "logical_and"),
    "maximum": ("maximum", "logical_or"),
    "minimum": ("minimum", "logical_and"),
    "and": ("bitwise_and", "logical_and"),
    "or": ("bitwise_or", "logical_or"),
    "xor": ("bitwise_xor", "logical_xor"),
    "atan2": ("atan2", ""),
}
"""Our operators by operation, of two operands: of numbers, and of booleans."""


@converts(*(f"stablehlo.{name}" for name in _OF_ONE))
def of_one(node: Node) -> Expr:
    """Our operator on the operand."""
    name = node.name.removeprefix("stablehlo.")
    return node.emit(_OF_ONE[name], node[0])


@converts(*(f"stablehlo.{name}" for name in _OF_TWO))
def of_two(node: Node) -> Expr:
    """Our operator on both operands, which are of one shape."""
    name = node.name.removeprefix("stablehlo.")
    return combined(node, name, *node.narrow(node[0], node[1]))


def combined(node: Node, name: str, x: Expr, y: Expr) -> Expr:
    """The operation `name`, one of two operands."""
    return node.emit(_OF_TWO[name][dtype_of(x) == "bool"], x, y)


@converts(*(f"chlo.broadcast_{name}" for name in _OF_TWO))
def of_two_broadcast(node: Node) -> Expr:
    """The same, with broadcasting of trailing axes."""
    return combined(node, node.name.removeprefix("chlo.broadcast_"), *trailing(node))


@converts("chlo.broadcast_select")
def select_broadcast(node: Node) -> Expr:
    """A choice, with broadcasting of trailing axes."""
    return node.emit("where", *trailing(node))


def trailing(node: Node) -> list[Expr]:
    """All operands, of which the last axes are the same."""
    if node.name.startswith("stablehlo."):
        return node.narrow(*(node[place] for place in range(len(node))))
    if node.has("broadcast_dimensions"):
        least = min(node.rank(0), node.rank(1))
        most = max(node.rank(0), node.rank(1))
        if node.integers("broadcast_dimensions") != tuple(range(most - least, most)):
            raise ModelError("its broadcast_dimensions are not the last axes")
    return [node[place] for place in range(len(node))]


@converts("stablehlo.not")
def complement(node: Node) -> Expr:
    """Each bit inverted; of booleans, their negation."""
    return node.emit("logical_not" if node.dtype(0) == "bool" else "bitwise_not", node[0])


@converts("stablehlo.divide")
def divide(node: Node) -> Expr:
    """A quotient; of integers it is rounded towards 0, and -1 for a divisor of 0."""
    x, y = node.narrow(node[0], node[1])
    dtype = node.dtype(0)
    if is_float(dtype):
        return node.emit("divide", x, y)
    if is_signed(dtype):
        rest = node.emit("mod", x, y)
        quotient = node.emit("floor_divide", node.emit("subtract", x, rest), y)
    else:
        quotient = node.emit("floor_divide", x, y)
    ones = Constant((~like(0, x).data).astype(dtype))
    return _unless_zero(node, y, ones, quotient)


@converts("stablehlo.remainder")
def remainder(node: Node) -> Expr:
    """A remainder with the sign of the dividend; of integers, the dividend for a divisor of 0."""
    x, y = node.narrow(node[0], node[1])
    rest = node.emit("mod", x, y)
    return rest if is_float(node.dtype(0)) else _unless_zero(node, y, x, rest)


def _unless_zero(node: Node, divisor: Expr, instead: Expr, value: Expr) -> Expr:
    if isinstance(divisor, Constant) and divisor.data.all():
        return value
    number = number_of(divisor)
    if number is not None and number != 0:
        return value
    return node.emit("where", node.emit("equal", divisor, like(0, divisor)), instead, value)


@converts("stablehlo.power", "chlo.broadcast_power")
def power(node: Node) -> Expr:
    """A power; of integers by squaring, 1 over the power for a negative exponent, rounded to 0."""
    x, y = trailing(node)
    dtype = dtype_of(x)
    if is_float(dtype):
        return node.emit("power", x, y)
    result, square, bits = like(1, x), x, like(0, x).data.dtype.itemsize * 8
    for bit in range(bits - 1 if is_signed(dtype) else bits):
        digit = node.emit("bitwise_and", y, Constant((like(1, x).data << bit).astype(dtype)))
        is_set = node.emit("not_equal", digit, like(0, x))
        result = node.emit("where", is_set, node.emit("multiply", result, square), result)
        square = node.emit("multiply", square, square)
    if not is_signed(dtype):
        return result
    inverse = node.emit("where", node.emit("equal", x, like(-1, x)), result, like(0, x))
    inverse = node.emit("where", node.emit("equal", x, like(1, x)), like(1, x), inverse)
    return node.emit("where", node.emit("less", y, like(0, x)), inverse, result)


_COMPARISONS: Mapping[str, str] = {
    "EQ": "equal",
    "NE": "not_equal",
    "LT": "less",
    "LE": "less_equal",
    "GT": "greater",
    "GE": "greater_equal",
}


@converts("stablehlo.compare", "chlo.broadcast_compare")
def compare(node: Node) -> Expr:
    """A comparison; booleans are compared as integers."""
    direction = stablehlo.ComparisonDirectionAttr(node.attribute("comparison_direction")).value
    x, y = (node.cast(v, "int8") if dtype_of(v) == "bool" else v for v in trailing(node))
    return node.emit(_COMPARISONS[direction], x, y)


@converts("stablehlo.select")
def select(node: Node) -> Expr:
    """One operand or the other, by each element of a condition, or by one for all."""
    if node.rank(0) != node.rank(1):
        return node.emit("where", node[0], node[1], node[2])
    return node.emit("where", *node.narrow(node[0], node[1], node[2]))


@converts("stablehlo.clamp")
def clamp(node: Node) -> Expr:
    """The number between two bounds that is nearest."""
    low, x, high = node[0], node[1], node[2]
    if node.shape(0) == node.shape(1) == node.shape(2):
        low, x, high = node.narrow(low, x, high)
    least, most = number_of(low), number_of(high)
    if least is not None and most is not None and is_float(dtype_of(x)) and least <= most:
        return node.emit("clip", x, min=least, max=most)
    return node.emit("minimum", node.emit("maximum", x, low), high)


@converts("stablehlo.round_nearest_afz")
def round_half_away(node: Node) -> Expr:
    """The nearest integer, of two the one farther from 0."""
    x = node[0]
    whole = node.emit("trunc", x)
    rest = node.emit("abs", node.emit("subtract", x, whole))
    up = node.emit("add", whole, node.emit("sign", x))
    return node.emit("where", node.emit("greater_equal", rest, like(0.5, x)), up, whole)
