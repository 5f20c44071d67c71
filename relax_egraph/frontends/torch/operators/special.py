"""Functions that torch reduces to functions of C, which are composed here."""

import math
from collections.abc import Sequence
from functools import reduce

from relax_egraph.frontends.building.builder import Builder, dtype_of
from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir.expr import Expr

_MIDDLE = (
    (
        *(2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594),
        *(6.61191906371416295e1, 2.98635138197400131e2, 8.81952221241769090e2),
        *(1.71204761263407058e3, 2.05107837782607147e3, 1.23033935479799725e3),
    ),
    (
        *(1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2),
        *(1.62138957456669019e3, 3.29079923573345963e3, 4.36261909014324716e3),
        *(3.43936767414372164e3, 1.23033935480374942e3),
    ),
)
"""``erfc(z) · e^(z²)`` up to 4: a ratio of polynomials in z (Cody, 1969)."""

_FAR = (
    (
        *(1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1),
        *(1.25781726111229246e-1, 1.60837851487422766e-2, 6.58749161529837803e-4),
    ),
    (
        *(1.0, 2.56852019228982242, 1.87295284992346725, 5.27905102951428412e-1),
        *(6.05183413124413191e-2, 2.33520497626869185e-3),
    ),
)
"""``(1/√π - erfc(z) · e^(z²) · z) · z²`` beyond: a ratio of polynomials in ``1/z²``."""

_MIDDLE_END, _GREATEST = 4.0, 40.0
"""The end of the first ratio, and a number whose square has no exponential in float64."""


@converts("aten.erfc.default")
def erfc(node: Node) -> Expr:
    """``1 - erf(self)``, of which the small values on the right have their digits."""
    x, size, scaled = _scaled(node)
    tail = node.emit("multiply", _bell(node, size), scaled)
    left = node.emit("subtract", node.scalar(2, "float64"), tail)
    return _by_side(node, x, (left, node.emit("subtract", _ones(node), node.emit("erf", x)), tail))


@converts("prims.erfcx.default")
def erfcx(node: Node) -> Expr:
    """``erfc(self) · e^(self²)``."""
    x, size, scaled = _scaled(node)
    growth = node.emit("divide", _ones(node), _bell(node, size))
    left = node.emit("subtract", node.emit("add", growth, growth), scaled)
    near = node.emit("multiply", growth, node.emit("subtract", _ones(node), node.emit("erf", x)))
    return _by_side(node, x, (left, near, scaled))


def _scaled(node: Node) -> tuple[Expr, Expr, Expr]:
    """The operand in float64, its magnitude z, and ``erfc(z) · e^(z²)`` for z from 0.5 on."""

    def ratio(of: tuple[tuple[float, ...], tuple[float, ...]], z: Expr) -> Expr:
        return node.emit("divide", *(_polynomial(node, coefficients, z) for coefficients in of))

    name = "self" if "self" in node.arguments else "a"
    x = node.cast(node.operand(name, node.out_dtype), "float64")
    size, end = node.emit("abs", x), node.scalar(_MIDDLE_END, "float64")
    middle = ratio(_MIDDLE, node.emit("minimum", size, end))
    great = node.emit("maximum", size, end)
    inverse = node.emit("divide", _ones(node), node.emit("square", great))
    less = node.emit("multiply", inverse, ratio(_FAR, inverse))
    limit = node.scalar(1 / math.sqrt(math.pi), "float64")
    far = node.emit("divide", node.emit("subtract", limit, less), great)
    return x, size, node.emit("where", node.emit("greater", size, end), far, middle)


def _polynomial(node: Node, coefficients: Sequence[float], z: Expr) -> Expr:
    first, *others = (node.scalar(c, "float64") for c in coefficients)
    return reduce(lambda v, c: node.emit("add", node.emit("multiply", v, z), c), others, first)


def _ones(node: Node) -> Expr:
    return node.scalar(1, "float64")


def _by_side(node: Node, x: Expr, values: tuple[Expr, Expr, Expr]) -> Expr:
    """The values of `x` far on the left, near 0, and on the right, in the result's dtype."""
    left, near, right = values
    is_left = node.emit("less", x, node.scalar(0, "float64"))
    is_near = node.emit("less", node.emit("abs", x), node.scalar(0.5, "float64"))
    outer = node.emit("where", is_left, left, right)
    return node.cast(node.emit("where", is_near, near, outer), node.out_dtype)


def _bell(node: Node, z: Expr) -> Expr:
    """``e^(-z²)`` of z in float64, whose square is rounded: the head of z has an exact one."""
    z = node.emit("minimum", z, node.scalar(_GREATEST, "float64"))
    steps = node.scalar(16, "float64")
    head = node.emit("divide", node.emit("floor", node.emit("multiply", z, steps)), steps)
    rest = node.emit("multiply", node.emit("subtract", z, head), node.emit("add", z, head))
    powers = (node.emit("exp", node.emit("negative", v)) for v in (node.emit("square", head), rest))
    return node.emit("multiply", *powers)


@converts("aten.hypot.default")
def hypot(node: Node) -> Expr:
    """``√(self² + other²)``, relative to the greater, so that no square overflows."""
    dtype = node.out_dtype
    return hypotenuse(node, node.operand("self", dtype), node.operand("other", dtype))


def hypotenuse(b: Builder, x: Expr, y: Expr) -> Expr:
    """``√(x² + y²)`` of floats; infinite where either is."""
    dtype = dtype_of(x)
    x, y = b.emit("abs", x), b.emit("abs", y)
    great, less = b.emit("maximum", x, y), b.emit("minimum", x, y)
    zero, one, infinity = (b.scalar(v, dtype) for v in (0, 1, float("inf")))
    ratio = b.emit("divide", less, great)
    root = b.emit("sqrt", b.emit("add", b.emit("square", ratio), one))
    found = b.emit("where", b.emit("equal", great, zero), zero, b.emit("multiply", great, root))
    is_infinite = b.emit("logical_or", b.emit("isinf", x), b.emit("isinf", y))
    return b.emit("where", is_infinite, infinity, found)
