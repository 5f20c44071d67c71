"""Functions that torch reduces to functions of C, which are composed here."""

from functools import reduce

from relax_egraph.errors import ModelError
from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir.expr import Expr

_TAIL = (
    0.17087277,
    -0.82215223,
    1.48851587,
    -1.13520398,
    0.27886807,
    -0.18628806,
    0.09678418,
    0.37409196,
    1.00002368,
    -1.26551223,
)
"""The logarithm of ``erfc(z) · e^(z²) / t`` by powers of ``t = 1 / (1 + z/2)``, within 1.2e-7."""


@converts("aten.erfc.default")
def erfc(node: Node) -> Expr:
    """``1 - erf(self)``, of which the small values on the right have their digits, in float32."""
    dtype = node.out_dtype
    if dtype == "float64":
        raise ModelError("it is computed to the digits of float32, needs an operand of float32")

    def number(value: float) -> Expr:
        return node.scalar(value, "float64")

    x = node.cast(node.operand("self", dtype), "float64")
    size = node.emit("abs", x)
    half = node.emit("add", node.emit("multiply", size, number(0.5)), number(1))
    t = node.emit("divide", number(1), half)
    first, *others = map(number, _TAIL)
    series = reduce(
        lambda sum_, c: node.emit("add", node.emit("multiply", sum_, t), c), others, first
    )
    power = node.emit("exp", node.emit("subtract", series, node.emit("square", size)))
    tail = node.emit("multiply", t, power)
    left = node.emit("less", x, number(0))
    far = node.emit("where", left, node.emit("subtract", number(2), tail), tail)
    near = node.emit("subtract", number(1), node.emit("erf", x))
    is_near = node.emit("less", size, number(0.5))
    return node.cast(node.emit("where", is_near, near, far), dtype)


@converts("aten.hypot.default")
def hypot(node: Node) -> Expr:
    """``√(self² + other²)``, relative to the greater, so that no square overflows."""
    dtype = node.out_dtype
    x, y = (node.emit("abs", node.operand(name, dtype)) for name in ("self", "other"))
    great, less = node.emit("maximum", x, y), node.emit("minimum", x, y)
    zero, one, infinity = (node.scalar(v, dtype) for v in (0, 1, float("inf")))
    ratio = node.emit("divide", less, great)
    root = node.emit("sqrt", node.emit("add", node.emit("square", ratio), one))
    found = node.emit(
        "where", node.emit("equal", great, zero), zero, node.emit("multiply", great, root)
    )
    is_infinite = node.emit("logical_or", node.emit("isinf", x), node.emit("isinf", y))
    return node.emit("where", is_infinite, infinity, found)
