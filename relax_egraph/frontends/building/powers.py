"""Exact powers of integers, which wrap."""

from relax_egraph.frontends.building.builder import Builder, dtype_of, info_of
from relax_egraph.ir.dtypes import TABLE, is_signed
from relax_egraph.ir.expr import Constant, Expr


def power_of_integers(builder: Builder, x: Expr, y: Expr) -> Expr:
    """``x ^ y`` in the dtype of `x`, of integers; negative powers but of 1 and -1 are 0."""
    times = _times(x, y)
    return _of_integers(builder, x, y) if times is None else _product(builder, x, times)


def _times(x: Expr, y: Expr) -> int | None:
    """The exponent, if it is a single number that adds no axes."""
    if not isinstance(y, Constant) or y.data.size != 1 or y.data.ndim > max(info_of(x).ndim, 0):
        return None
    times = int(y.data.item())
    return times if times >= 0 else None


def _product(builder: Builder, x: Expr, times: int) -> Expr:
    """``x`` to the power `times`, by squaring."""
    product: Expr | None = None
    while times:
        if times & 1:
            product = x if product is None else builder.emit("multiply", product, x)
        times >>= 1
        if times:
            x = builder.emit("multiply", x, x)
    return builder.emit("ones_like", x) if product is None else product


def _of_integers(builder: Builder, x: Expr, y: Expr) -> Expr:
    """The product of those of x, x², x⁴, … whose bit is set in `y`; it wraps.

    Negative powers are 0, except those of 1 and -1, which are those of the magnitude.
    """
    base, one = dtype_of(x), builder.scalar(1, dtype_of(x))
    unit, below = builder.emit("equal", builder.emit("abs", x), one), None
    exponent = dtype_of(y)
    bits = TABLE[exponent].bits
    if is_signed(exponent):
        below = builder.emit("less", y, builder.scalar(0, exponent))
        y, bits = builder.emit("abs", y), bits - 1
    size = builder.cast(y, "uint64")
    product: Expr = one
    for number in range(bits):
        bit = builder.emit("bitwise_and", size, builder.scalar(1 << number, "uint64"))
        is_set = builder.emit("not_equal", bit, builder.scalar(0, "uint64"))
        factor = builder.emit("where", is_set, x, one)
        product = factor if number == 0 else builder.emit("multiply", product, factor)
        x = builder.emit("multiply", x, x)
    if below is None:
        return product
    vanishes = builder.emit("logical_and", below, builder.emit("logical_not", unit))
    return builder.emit("where", vanishes, builder.scalar(0, base), product)
