"""Elementwise functions of one tensor."""

import math
from collections.abc import Mapping

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.building.near_zero import expm1, log1p
from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir.dtypes import is_float, is_signed
from relax_egraph.ir.expr import Expr

_SAME: Mapping[str, str] = {
    "aten.abs.default": "abs",
    "aten.acos.default": "acos",
    "aten.acosh.default": "acosh",
    "aten.asin.default": "asin",
    "aten.asinh.default": "asinh",
    "aten.atan.default": "atan",
    "aten.atanh.default": "atanh",
    "aten.bitwise_not.default": "bitwise_not",
    "aten.ceil.default": "ceil",
    "aten.cos.default": "cos",
    "aten.cosh.default": "cosh",
    "aten.erf.default": "erf",
    "aten.exp.default": "exp",
    "aten.floor.default": "floor",
    "aten.log.default": "log",
    "aten.logical_not.default": "logical_not",
    "aten._neg_view.default": "negative",
    "aten.neg.default": "negative",
    "aten.relu.default": "nn.relu",
    "aten.round.default": "round",
    "aten.rsqrt.default": "rsqrt",
    "aten.sigmoid.default": "sigmoid",
    "aten.sin.default": "sin",
    "aten.sinh.default": "sinh",
    "aten.sqrt.default": "sqrt",
    "aten.square.default": "square",
    "aten.tan.default": "tan",
    "aten.tanh.default": "tanh",
    "aten.trunc.default": "trunc",
}
"""Operators that are one of ours, computed in the dtype of the result."""

_UNSIGNED = ("abs", "ceil", "floor", "round", "trunc")
"""Those that leave booleans as they are."""


@converts(*_SAME)
def same(node: Node) -> Expr:
    """Our operator on the operand, which is cast first where the result has another dtype."""
    name, x = _SAME[node.op], node.operand("self", node.out_dtype)
    if node.out_dtype == "bool" and name in _UNSIGNED:
        return x
    return node.emit(name, x)


@converts("aten.isnan.default", "aten.isinf.default")
def kind_of(node: Node) -> Expr:
    """Whether elements are NaN, or infinite; integers are not."""
    name = node.op.split(".")[1]
    if not is_float(node.dtype("self")):
        return node.emit("zeros_like", node["self"], dtype="bool")
    return node.emit(name, node["self"])


@converts("aten.sign.default", "aten.sgn.default")
def sign(node: Node) -> Expr:
    """1, 0 or -1; 0 of NaN and of -0.0; booleans stay as they are."""
    x = node["self"]
    if node.out_dtype == "bool":
        return x
    if not is_float(node.out_dtype):
        return node.emit("sign", x)
    zero = node.scalar(0, node.out_dtype)
    differs = node.emit("greater", node.emit("abs", x), zero)
    return node.emit("where", differs, node.emit("sign", x), zero)


@converts("aten.signbit.default")
def signbit(node: Node) -> Expr:
    """Whether elements have the sign bit set, as -0.0 has."""
    x, dtype = node["self"], node.dtype("self")
    if not is_float(dtype):
        zero = node.scalar(0, dtype)
        if is_signed(dtype):
            return node.emit("less", x, zero)
        return node.emit("zeros_like", x, dtype="bool")
    return is_negative(node, x)


def is_negative(node: Node, x: Expr) -> Expr:
    """Whether floats have the sign bit set; the sign of NaN is not told.

    The quotient by infinity of a finite number is a zero of its sign, by which 1 is divided.
    """
    dtype = dtype_of(x)
    zero, one = node.scalar(0, dtype), node.scalar(1, dtype)
    below_zero = node.emit("less", x, zero)
    turned = node.emit("less", node.emit("divide", one, x), zero)
    is_zero = node.emit("equal", x, zero)
    return node.emit("logical_or", below_zero, node.emit("logical_and", is_zero, turned))


@converts("aten.angle.default")
def angle(node: Node) -> Expr:
    """π of numbers below 0, else 0; NaN of NaN."""
    x, zero = node.operand("self", node.out_dtype), node.scalar(0, node.out_dtype)
    half_turn = node.scalar(math.pi, node.out_dtype)
    found = node.emit("where", node.emit("less", x, zero), half_turn, zero)
    return node.emit("where", node.emit("isnan", x), x, found)


@converts("aten.reciprocal.default")
def reciprocal(node: Node) -> Expr:
    """``1 / self``."""
    dtype = node.out_dtype
    return node.emit("divide", node.scalar(1, dtype), node.operand("self", dtype))


@converts("aten.log2.default", "aten.log10.default")
def logarithm(node: Node) -> Expr:
    """A logarithm to the base 2 or 10, in float64: that of a power of the base is whole."""
    base = 2 if ".log2." in node.op else 10
    natural = node.emit("log", node.cast(node.operand("self", node.out_dtype), "float64"))
    scaled = node.emit("multiply", natural, node.scalar(1 / math.log(base), "float64"))
    return node.cast(scaled, node.out_dtype)


@converts("aten.exp2.default")
def exp2(node: Node) -> Expr:
    """``2 ^ self``."""
    dtype = node.out_dtype
    return node.emit("power", node.scalar(2, dtype), node.operand("self", dtype))


@converts("aten.expm1.default", "aten.log1p.default")
def near_zero(node: Node) -> Expr:
    """``e^self - 1`` or ``ln(1 + self)``, accurate near 0."""
    function = expm1 if ".expm1." in node.op else log1p
    return function(node, node.operand("self", node.out_dtype))


@converts("aten.round.decimals")
def round_to(node: Node) -> Expr:
    """`self` rounded to some decimals, before the point if those are negative."""
    dtype, decimals = node.out_dtype, node.integer("decimals")
    if decimals == 0 or not is_float(dtype):
        return node.emit("round", node["self"])
    scale = node.scalar(10.0 ** abs(decimals), dtype)
    up, down = ("multiply", "divide") if decimals > 0 else ("divide", "multiply")
    return node.emit(down, node.emit("round", node.emit(up, node["self"], scale)), scale)


@converts("aten.native_dropout.default")
def dropout(node: Node) -> list[Expr | None]:
    """The operand itself, outside of training; all of it is kept."""
    if node.arguments["train"]:
        raise ModelError("it draws random numbers in training: export it after model.eval()")
    kept = node.emit("ones_like", node["input"], dtype="bool")
    return [node["input"], kept]
