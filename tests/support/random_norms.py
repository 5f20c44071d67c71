"""Norms in random programs, in the spellings of exporters."""

import numpy as np

from relax_egraph.ir.block_builder import call
from relax_egraph.ir.expr import Constant, Expr, TupleGetItem, shape
from relax_egraph.ir.struct_info import Shape
from tests.support.random_choices import but, either_way, floats, number, static, weight
from tests.support.random_writer import Writer, shape_of

EPSILON = 1e-5


def normalised(w: Writer, x: Expr, axes: tuple[int, ...], epsilon: float) -> Expr:
    """``(x - mean) / sqrt(variance + epsilon)`` along `axes`."""
    mean = w.op("mean", x, axis=axes, keepdims=True)
    away = w.op("subtract", x, mean)
    again = away if w.chance(0.7) else w.op("subtract", x, mean)
    square = w.choice(("multiply", "square", "power", "variance"))
    if square == "variance":
        variance = w.op("variance", x, axis=but(w, axes, (0,)), keepdims=True)
    else:
        other = {"multiply": [away], "square": [], "power": [number(x, but(w, 2.0, 4.0))]}[square]
        variance = w.op("mean", w.op(square, away, *other), axis=axes, keepdims=True)
    return _by_root(w, but(w, again, x), either_way(w, "add", variance, number(x, epsilon)))


def _by_root(w: Writer, x: Expr, variance: Expr) -> Expr:
    way = w.choice(("rsqrt", "sqrt", "reciprocal"))
    if way == "rsqrt":
        return either_way(w, "multiply", x, w.op("rsqrt", variance))
    if way == "sqrt":
        return w.op("divide", x, w.op("sqrt", variance))
    return either_way(w, "multiply", x, w.op("divide", number(x, 1), w.op("sqrt", variance)))


def scaled_and_shifted(w: Writer, x: Expr, extents: Shape) -> Expr:
    if w.chance(0.8):
        x = either_way(w, "multiply", x, weight(w, x, extents, near=1.0))
    return either_way(w, "add", x, weight(w, x, extents)) if w.chance(0.7) else x


def layer_norm_written_out(w: Writer) -> Expr:
    x = w.tensor("f", least=1)
    rank = len(shape_of(x))
    first = w.random.randrange(rank) if w.chance(0.3) else rank - 1
    axes = tuple(range(first, rank))
    result = normalised(w, x, axes, but(w, EPSILON, 1e-3))
    return scaled_and_shifted(w, result, shape_of(x)[but(w, first, rank) :])


def rms_norm_written_out(w: Writer) -> Expr:
    x = w.tensor("f", least=1)
    squares = w.op("mean", w.op("multiply", x, but(w, x, w.beside(x))), axis=-1, keepdims=True)
    result = _by_root(w, x, w.op("add", squares, number(x, EPSILON)))
    return w.op("multiply", result, weight(w, x, shape_of(x)[-1:], near=1.0))


def norm_of_groups(w: Writer) -> Expr:
    """Instance norm, or group norm between two reshapes."""
    x = floats(w, w.choice((3, 4)))
    rank, channels = len(shape_of(x)), static(x, 1)
    each = (channels, *(1,) * (rank - 2))
    if w.chance(0.4):
        return scaled_and_shifted(w, normalised(w, x, tuple(range(2, rank)), EPSILON), each)
    count = w.choice([k for k in range(1, channels + 1) if channels % k == 0] or [1])
    grouped = (shape_of(x)[0], count, channels // count, *shape_of(x)[2:])
    result = normalised(w, w.op("reshape", x, shape(grouped)), tuple(range(2, rank + 1)), EPSILON)
    return scaled_and_shifted(w, w.op("reshape", result, shape(shape_of(x))), each)


def batch_norm(w: Writer, x: Expr, axis: int) -> Expr:
    """Batch norm by constants: the operator, or the formula."""
    channels = static(x, axis)
    gamma, beta, mean = (weight(w, x, (channels,), near) for near in (1.0, 0.0, 0.5))
    variance = Constant(np.abs(mean.data) + np.asarray(0.5, mean.data.dtype))
    if w.chance(0.6):
        operands = (x, gamma, beta, mean, variance)
        attrs = {"center": w.chance(0.9), "scale": w.chance(0.9), "training": w.chance(0.1)}
        return w.emit(TupleGetItem(w.emit(call("nn.batch_norm", *operands, axis=axis, **attrs)), 0))
    ones = (channels, *(1,) * (len(shape_of(x)) - 1 - axis % len(shape_of(x))))
    g, b, m, v = (Constant(c.data.reshape(ones)) for c in (gamma, beta, mean, variance))
    result = _by_root(w, w.op("subtract", x, m), w.op("add", v, number(x, EPSILON)))
    return w.op("add", either_way(w, "multiply", result, g), b)
