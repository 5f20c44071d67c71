"""Powers: of floats, and exact powers of integers."""

from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.operators.alignment import aligned
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir.dtypes import computed, is_float, is_signed
from relax_egraph.ir.expr import Constant, Expr

_MOST = 64
"""The power from which on an even number wraps to 0 in every dtype."""


@converts("Pow")
def power(node: Node) -> Expr:
    """A power in the dtype of its base."""
    x, y = aligned(node)
    base, exponent = dtype_of(x), dtype_of(y)
    if base == exponent and is_float(base):
        return node.emit("power", x, y)
    if is_float(base):
        wide = "float64" if exponent == "float64" else computed(base)
        return node.cast(node.emit("power", node.cast(x, wide), node.cast(y, wide)), base)
    if is_float(exponent):
        return node.cast(_nearly_whole(node, x, y), base)
    times = _times(node, y)
    return _of_integers(node, x, y) if times is None else _product(node, x, times)


def _times(node: Node, y: Expr) -> int | None:
    """The exponent, if it is a single small number that adds no axes."""
    if not isinstance(y, Constant) or y.data.size != 1 or y.data.ndim > max(node.info(0).ndim, 0):
        return None
    times = int(y.data.item())
    return times if 0 <= times <= _MOST else None


def _nearly_whole(node: Node, x: Expr, y: Expr) -> Expr:
    """A power of an integer in floats, rounded if it is within an error of an integer."""
    result = node.emit("power", node.cast(x, "float64"), node.cast(y, "float64"))
    whole = node.emit("round", result)
    error = node.emit("abs", node.emit("subtract", result, whole))
    allowed = node.emit("multiply", node.emit("abs", result), node.scalar(1e-14, "float64"))
    return node.emit("where", node.emit("less_equal", error, allowed), whole, result)


def _product(node: Node, x: Expr, times: int) -> Expr:
    """``x`` to the power `times`, by squaring."""
    product: Expr | None = None
    while times:
        if times & 1:
            product = x if product is None else node.emit("multiply", product, x)
        times >>= 1
        if times:
            x = node.emit("multiply", x, x)
    return node.emit("ones_like", x) if product is None else product


def _of_integers(node: Node, x: Expr, y: Expr) -> Expr:
    """The product of those of x, x², x⁴, … whose bit is set in `y`; it wraps.

    Powers beyond 64 equal the 64th or 65th, since they are 0, 1 or -1, or have wrapped.  Negative
    powers are 0, except those of 1 and -1.
    """
    base, one = dtype_of(x), node.scalar(1, dtype_of(x))
    unit, below = node.emit("equal", node.emit("abs", x), one), None
    if is_signed(dtype_of(y)):
        below = node.emit("less", y, node.scalar(0, dtype_of(y)))
        y = node.emit("abs", y)
    size = node.cast(y, "uint64")

    def bit(number: int) -> Expr:
        return node.emit("bitwise_and", size, node.scalar(1 << number, "uint64"))

    most = node.scalar(_MOST, "uint64")
    beyond = node.emit("add", bit(0), most)
    size = node.emit("where", node.emit("greater", size, most), beyond, size)
    product: Expr = one
    for number in range(_MOST.bit_length()):
        is_set = node.emit("not_equal", bit(number), node.scalar(0, "uint64"))
        factor = node.emit("where", is_set, x, one)
        product = factor if number == 0 else node.emit("multiply", product, factor)
        x = node.emit("multiply", x, x)
    if below is None:
        return product
    vanishes = node.emit("logical_and", below, node.emit("logical_not", unit))
    return node.emit("where", vanishes, node.scalar(0, base), product)
