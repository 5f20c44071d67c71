"""Functions of one operand that are accurate near 0, where the plain formula cancels."""

from relax_egraph.frontends.building.builder import Builder, dtype_of
from relax_egraph.ir.expr import Expr


def expm1(builder: Builder, x: Expr) -> Expr:
    """``eˣ - 1``, as ``tanh(x/2) · (eˣ + 1)``: nothing cancels."""
    dtype = dtype_of(x)
    half = builder.emit("tanh", builder.emit("multiply", x, builder.scalar(0.5, dtype)))
    sum_ = builder.emit("add", builder.emit("exp", x), builder.scalar(1, dtype))
    return builder.emit("multiply", half, sum_)


def log1p(builder: Builder, x: Expr) -> Expr:
    """``ln(1 + x)``; between -½ and 1 as ``2 · artanh(x / (2 + x))``."""
    dtype = dtype_of(x)

    def number(value: float) -> Expr:
        return builder.scalar(value, dtype)

    ratio = builder.emit("divide", x, builder.emit("add", x, number(2)))
    near = builder.emit("multiply", builder.emit("atanh", ratio), number(2))
    far = builder.emit("log", builder.emit("add", x, number(1)))
    above = builder.emit("greater", x, number(-0.5))
    is_near = builder.emit("logical_and", above, builder.emit("less", x, number(1)))
    return builder.emit("where", is_near, near, far)
