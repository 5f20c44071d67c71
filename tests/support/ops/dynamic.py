"""Instances of operators with data-dependent shapes, and of shapes as values."""

from collections.abc import Mapping

from relax_egraph.ir.expr import Attr
from tests.support.ops.case import ANY, FLOATS, INTEGERS, Case, Draw, Sampler
from tests.support.ops.sort import tied


def of_any(draw: Draw) -> Case:
    """A tensor of any shape and dtype."""
    return Case((tied(draw, draw.shape(), draw.choice(ANY)),))


def unique(draw: Draw) -> Case:
    """Elements or slices, in either order, with any of the optional results."""
    (x,) = of_any(draw).operands
    axis = draw.axis(x.ndim) if x.ndim and draw.chance() else None
    flags = ("sorted", "return_index", "return_inverse", "return_counts")
    attrs: dict[str, Attr] = {"axis": axis, **{name: draw.chance() for name in flags}}
    return Case((x,), attrs)


def shape(draw: Draw) -> Case:
    """A shape of any rank."""
    return Case((draw.shape(),))


def extents(draw: Draw) -> Case:
    """A few extents as a tensor."""
    return Case((draw.array(draw.shape(1, 1), draw.choice(INTEGERS), 0, 7),))


def number(draw: Draw) -> Case:
    """A whole number or a float, and a dtype."""
    value = draw.choice([draw.integer(0, 7), draw.integer(-8, 8) / 4])
    dtypes = ("float32", "float64", "int64", "int32") if isinstance(value, int) else FLOATS
    return Case((value,), {"dtype": draw.choice(dtypes)})


def bounded(draw: Draw) -> Case:
    """An extent and a bound."""
    return Case((draw.extent(), draw.integer(-2, 7)))


SAMPLERS: Mapping[str, Sampler] = {
    "unique": unique,
    **dict.fromkeys(["nonzero", "size", "shape_of"], of_any),
    "shape_to_tensor": shape,
    "tensor_to_shape": extents,
    "prim_to_tensor": number,
    "prim_less_equal": bounded,
}
