"""Chains of reductions, and joins of parts, in random programs."""

import numpy as np

from relax_egraph.ir.block_builder import call
from relax_egraph.ir.expr import Call, Constant, Expr, PrimValue, Tuple, shape
from relax_egraph.ir.op import OPS
from tests.support.random_choices import but, number
from tests.support.random_writer import Rejected, Writer, shape_of

REDUCTIONS = ("sum", "sum", "mean", "mean", "max", "min", "prod")


def chained_reductions(w: Writer) -> Expr:
    """An elementwise operator, reduced along some axes, and then along others."""
    x = _altered(w, w.tensor("f", least=1))
    name, rank = w.choice(REDUCTIONS), len(shape_of(x))
    count = w.random.randint(1, rank)
    axes = tuple(sorted(w.random.sample(range(rank), count)))
    keep = w.chance(0.5)
    y = w.op(name, x, axis=axes, keepdims=keep)
    if w.chance(0.3):
        return _altered(w, y)
    if w.chance(0.3):
        z = _altered(w, w.beside(x)) if w.chance(0.5) else x
        if shape_of(z) != shape_of(x):
            raise Rejected
        return w.op(w.choice(("add", "subtract")), y, w.op(name, z, axis=axes, keepdims=keep))
    if not shape_of(y):
        return y
    second = w.random.randrange(len(shape_of(y)))
    return w.op(but(w, name, *REDUCTIONS), y, axis=second, keepdims=w.chance(0.5))


def _altered(w: Writer, x: Expr) -> Expr:
    name = w.choice(("add", "subtract", "multiply", "divide", "negative", "abs", "permute_dims"))
    if name in ("negative", "abs", "permute_dims"):
        return w.op(name, x)
    return w.op(name, x, number(x, w.choice((2.0, -3.0, 0.5))))


def mean_from_sum(w: Writer) -> Expr:
    """A sum divided by the number of elements, along a constant axis."""
    x = w.tensor("f", least=1)
    axis = w.random.randrange(len(shape_of(x)))
    extent = shape_of(x)[axis]
    if not isinstance(extent, int) or extent == 0:
        raise Rejected
    total = w.op("sum", x, axis=axis, keepdims=w.chance(0.5))
    if w.chance(0.5):
        return w.op("divide", total, number(x, but(w, extent, extent + 1)))
    return w.op("multiply", total, number(x, 1 / extent))


# --- parts ------------------------------------------------------------------------------


def joined_again(w: Writer) -> Expr:
    """A concatenation of concatenations, or a part of one."""
    x = w.tensor(least=1)
    like = [v for v in w.known if v.struct_info == x.struct_info]
    axis = w.random.randrange(len(shape_of(x)))
    a, b, c = (w.choice(like) for _ in range(3))
    name = w.choice(("concat", "concat", "stack"))
    first = w.op(name, Tuple((a, b)), axis=axis)
    if name == "stack" or w.chance(0.5):
        begin = w.choice((0, 1))
        y = w.op("strided_slice", first, shape((begin,)), shape((begin + 1,)), axes=(axis,))
        return w.op("squeeze", y, axis=axis) if name == "stack" else y
    others = (first, c) if w.chance(0.5) else (c, first)
    return w.op("concat", Tuple(others), axis=but(w, axis, 0))


def selected_places(w: Writer) -> Expr:
    """Consecutive indices, selected one by one."""
    x = w.tensor(least=1)
    axis = w.random.randrange(len(shape_of(x)))
    extent = shape_of(x)[axis]
    if not isinstance(extent, int) or extent < 2:
        raise Rejected
    if w.chance(0.5):
        place = w.random.randint(-extent, extent - 1)
        return w.op("take", x, Constant(np.asarray(place)), axis=axis)
    first = w.random.randrange(extent - 1)
    places = np.arange(first, w.random.randint(first + 1, extent))
    return w.op("take", x, Constant(places), axis=axis)


def reshaped_by_extents(w: Writer) -> Expr:
    """A reshape to extents that are cut from a shape, as exporters write it."""
    x = w.tensor("f", least=2)
    own_shape = w.emit(Call(OPS["shape_of"], (x,)))
    extents = w.op("shape_to_tensor", own_shape)
    first, second = (
        w.op("strided_slice", extents, shape((k,)), shape((k + 1,)), axes=(0,)) for k in (0, 1)
    )
    rest = Constant(np.asarray([-1], np.int64))
    if w.chance(0.5):
        wanted = (first, rest)
    else:
        merged = w.op("multiply", first, second) if w.chance(0.5) else second
        wanted = (merged, rest)
    joined = w.op("concat", Tuple(wanted), axis=0)
    target = w.emit(call("tensor_to_shape", joined))
    return w.emit(call("reshape", x, target))


def triangle(w: Writer, x: Expr) -> Expr:
    """The lower triangle of `x`, up to some diagonal."""
    return w.op(w.choice(("tril", "triu")), x, PrimValue(w.choice((0, 0, 1, -1))))


def triangular(w: Writer) -> Expr:
    """A triangle of a tensor, or of one."""
    x = triangle(w, w.tensor("f", least=2))
    return triangle(w, x) if w.chance(0.3) else x
