"""Bits of integers; booleans are of one bit."""

from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir.dtypes import TABLE, is_signed
from relax_egraph.ir.expr import Expr

_BITWISE = [
    f"aten.bitwise_{name}.{kind}"
    for name in ("and", "or", "xor")
    for kind in ("Tensor", "Scalar", "Scalar_Tensor")
]


@converts(*_BITWISE)
def bitwise(node: Node) -> Expr:
    """A function of each pair of bits."""
    name, dtype = node.op.split(".")[1], node.out_dtype
    return node.emit(name, node.operand("self", dtype), node.operand("other", dtype))


_LEFT = ("bitwise_left_shift", "__lshift__")
_RIGHT = ("bitwise_right_shift", "__rshift__")
_SHIFTS = [
    *(
        f"aten.bitwise_{d}_shift.{k}"
        for d in ("left", "right")
        for k in ("Tensor", "Tensor_Scalar")
    ),
    *(f"aten.bitwise_{d}_shift.Scalar_Tensor" for d in ("left", "right")),
    *(f"aten.__{d}shift__.{k}" for d in ("l", "r") for k in ("Tensor", "Scalar")),
]


@converts(*_SHIFTS)
def shift(node: Node) -> Expr:
    """A shift of bits; by a negative number or by the width, it is by as much as shifts all out."""
    dtype = node.out_dtype
    x, y = node.operand("self", dtype), node.operand("other", dtype)
    if node.op.split(".")[1] in _LEFT:
        return node.emit("left_shift", x, y)
    return node.emit("right_shift", x, _within(node, y, dtype))


def _within(node: Node, y: Expr, dtype: str) -> Expr:
    """`y`, or the width where it is outside of it."""
    width = node.scalar(TABLE[dtype].bits - 1, dtype)
    if not is_signed(dtype):
        return y
    outside = node.emit("less", y, node.scalar(0, dtype))
    return node.emit("where", outside, width, y)
