"""Elementwise arithmetic of two tensors or more, with torch's promotion of dtypes."""

from relax_egraph.frontends.building.powers import power_of_integers
from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.operators.unary import is_negative
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir.dtypes import is_float, is_signed
from relax_egraph.ir.expr import Expr


@converts(
    "aten.add.Tensor", "aten.add.Scalar", "aten.sub.Tensor", "aten.sub.Scalar", "aten.rsub.Scalar"
)
def add(node: Node) -> Expr:
    """``self ± alpha · other``; of booleans, an add is an or."""
    dtype = node.out_dtype
    x, y = node.operand("self", dtype), node.operand("other", dtype)
    if node.arguments["alpha"] != 1:
        name = "logical_and" if dtype == "bool" else "multiply"
        y = node.emit(name, y, node.operand("alpha", dtype))
    if ".rsub." in node.op:
        x, y = y, x
    if ".add." not in node.op:
        return node.emit("subtract", x, y)
    return node.emit("logical_or" if dtype == "bool" else "add", x, y)


@converts("aten.mul.Tensor", "aten.mul.Scalar")
def multiply(node: Node) -> Expr:
    """``self · other``; of booleans, it is an and."""
    dtype = node.out_dtype
    name = "logical_and" if dtype == "bool" else "multiply"
    return node.emit(name, node.operand("self", dtype), node.operand("other", dtype))


@converts(
    "aten.div.Tensor",
    "aten.div.Scalar",
    "aten.div.Tensor_mode",
    "aten.div.Scalar_mode",
    "aten.floor_divide.default",
    "aten.floor_divide.Scalar",
)
def divide(node: Node) -> Expr:
    """``self / other``: in floats, rounded down, or rounded towards 0."""
    dtype = node.out_dtype
    mode = "floor" if ".floor_divide." in node.op else node.arguments.get("rounding_mode")
    x, y = node.operand("self", dtype), node.operand("other", dtype)
    if mode is None:
        return node.emit("divide", x, y)
    if mode == "floor":
        return _floored(node, x, y) if is_float(dtype) else node.emit("floor_divide", x, y)
    if is_float(dtype):
        return node.emit("trunc", node.emit("divide", x, y))
    if is_signed(dtype):
        x = node.emit("subtract", x, node.emit("mod", x, y))
    return node.emit("floor_divide", x, y)


def _floored(node: Node, x: Expr, y: Expr) -> Expr:
    """``⌊x / y⌋`` of floats, exact by the remainder; by 0 it is the quotient itself."""
    quotient = node.emit("divide", x, y)
    zero = node.scalar(0, node.out_dtype)
    rest = node.emit("subtract", x, node.emit("floor_mod", x, y))
    exact = node.emit("round", node.emit("divide", rest, y))
    return node.emit("where", node.emit("equal", y, zero), quotient, exact)


@converts(
    "aten.remainder.Tensor",
    "aten.remainder.Scalar",
    "aten.remainder.Scalar_Tensor",
    "aten.fmod.Tensor",
    "aten.fmod.Scalar",
)
def remainder(node: Node) -> Expr:
    """The remainder with the sign of `other`, or of `self` for ``fmod``."""
    name, dtype = "mod" if ".fmod." in node.op else "floor_mod", node.out_dtype
    return node.emit(name, node.operand("self", dtype), node.operand("other", dtype))


@converts("aten.pow.Tensor_Tensor", "aten.pow.Tensor_Scalar", "aten.pow.Scalar")
def power(node: Node) -> Expr:
    """``self ^ exponent``, in the common dtype."""
    dtype, exponent = node.out_dtype, node.arguments["exponent"]
    x = node.operand("self", dtype)
    if not is_float(dtype):
        return power_of_integers(node, x, node.operand("exponent", dtype))
    if exponent == 2 and not isinstance(exponent, Expr):
        return node.emit("square", x)
    if exponent == 0.5 and not isinstance(exponent, Expr):
        return node.emit("sqrt", x)
    return node.emit("power", x, node.operand("exponent", dtype))


@converts("aten.atan2.default", "aten.logaddexp.default")
def of_floats(node: Node) -> Expr:
    """Our operator of two floats."""
    name, dtype = "atan2" if ".atan2." in node.op else "log_add_exp", node.out_dtype
    return node.emit(name, node.operand("self", dtype), node.operand("other", dtype))


@converts("aten.maximum.default", "aten.minimum.default")
def extreme(node: Node) -> Expr:
    """The greater or less of two, NaN if either is; of booleans an or, or an and."""
    return _extreme(node, ".maximum." in node.op, node.out_dtype)


def _extreme(node: Node, greatest: bool, dtype: str) -> Expr:
    name = "maximum" if greatest else "minimum"
    if dtype == "bool":
        name = "logical_or" if greatest else "logical_and"
    return node.emit(name, node.operand("self", dtype), node.operand("other", dtype))


@converts("aten.fmax.default", "aten.fmin.default")
def extreme_number(node: Node) -> Expr:
    """The greater or less of two; NaN only where both are."""
    dtype = node.out_dtype
    if not is_float(dtype):
        return _extreme(node, ".fmax." in node.op, dtype)
    x, y = node.operand("self", dtype), node.operand("other", dtype)
    found = node.emit("maximum" if ".fmax." in node.op else "minimum", x, y)
    found = node.emit("where", node.emit("isnan", y), x, found)
    return node.emit("where", node.emit("isnan", x), y, found)


@converts("aten.copysign.Tensor", "aten.copysign.Scalar")
def copysign(node: Node) -> Expr:
    """The magnitude of `self` with the sign of `other`."""
    dtype = node.out_dtype
    size = node.emit("abs", node.operand("self", dtype))
    below = is_negative(node, node.operand("other", dtype))
    return node.emit("where", below, node.emit("negative", size), size)


@converts("aten.where.self", "aten.where.ScalarOther", "aten.where.ScalarSelf", "aten.where.Scalar")
def where(node: Node) -> Expr:
    """`self` where the condition holds, else `other`."""
    dtype = node.out_dtype
    condition = node.cast(node["condition"], "bool")
    return node.emit("where", condition, node.operand("self", dtype), node.operand("other", dtype))
