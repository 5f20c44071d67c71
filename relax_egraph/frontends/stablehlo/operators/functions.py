"""Functions of one number that are composed of others."""

from collections.abc import Mapping, Sequence

from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.stablehlo.node import Node, like
from relax_egraph.frontends.stablehlo.registry import converts
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.expr import Expr

_OPERATORS: Mapping[str, str] = {
    "chlo.acos": "acos",
    "chlo.acosh": "acosh",
    "chlo.asin": "asin",
    "chlo.asinh": "asinh",
    "chlo.atan": "atan",
    "chlo.atanh": "atanh",
    "chlo.cosh": "cosh",
    "chlo.erf": "erf",
    "chlo.is_inf": "isinf",
    "chlo.sinh": "sinh",
    "chlo.square": "square",
    "chlo.tan": "tan",
    "@mhlo.erf": "erf",
}


@converts(*_OPERATORS)
def of_one(node: Node) -> Expr:
    """Our operator on the operand."""
    return node.emit(_OPERATORS[node.name], node[0])


@converts("stablehlo.cbrt")
def cube_root(node: Node) -> Expr:
    """The cube root, with the sign of the operand."""
    x = node[0]
    root = node.emit("power", node.emit("abs", x), like(1 / 3, x))
    return node.emit("multiply", node.emit("sign", x), root)


@converts("stablehlo.exponential_minus_one")
def exp_minus_one(node: Node) -> Expr:
    """``eˣ - 1``; near 0 by its series ``x + x²/2 + x³/6 + …``."""
    x = node[0]
    terms = 18 if dtype_of(x) == "float64" else 9
    factors = [1 / k for k in range(2, terms)]
    series = like(1, x)
    for factor in reversed(factors):
        scaled = node.emit("multiply", node.emit("multiply", x, like(factor, x)), series)
        series = node.emit("add", like(1, x), scaled)
    near = node.emit("multiply", x, series)
    far = node.emit("subtract", node.emit("exp", x), like(1, x))
    return _near(node, 0.5, near, far)


@converts("stablehlo.log_plus_one")
def log_plus_one(node: Node) -> Expr:
    """``ln(1 + x)``; near 0 it is ``2·artanh(z)`` of ``z = x / (2 + x)``, by its series."""
    x = node[0]
    z = node.emit("divide", x, node.emit("add", like(2, x), x))
    terms = 12 if dtype_of(x) == "float64" else 5
    odd = _polynomial(node, node.emit("multiply", z, z), [2 / (2 * k + 1) for k in range(terms)])
    far = node.emit("log", node.emit("add", like(1, x), x))
    return _near(node, 0.25, node.emit("multiply", z, odd), far)


def _near(node: Node, bound: float, near: Expr, far: Expr) -> Expr:
    """`near` for operands of less than `bound` in absolute value, else `far`."""
    x = node[0]
    is_near = node.emit("less", node.emit("abs", x), like(bound, x))
    return node.emit("where", is_near, near, far)


def _polynomial(node: Node, x: Expr, coefficients: Sequence[float]) -> Expr:
    """``Σ coefficients[k] · xᵏ``."""
    *others, last = coefficients
    value: Expr = like(last, x)
    for coefficient in reversed(others):
        value = node.emit("add", node.emit("multiply", value, x), like(coefficient, x))
    return value


@converts("chlo.is_pos_inf", "chlo.is_neg_inf")
def is_one_infinity(node: Node) -> Expr:
    """Whether the operand is the infinity of one sign."""
    x = node[0]
    assert is_float(dtype_of(x))
    infinity = float("inf") if node.name == "chlo.is_pos_inf" else -float("inf")
    return node.emit("equal", x, like(infinity, x))
