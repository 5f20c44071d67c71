"""Choices within the formulas of random programs: operands, weights, and near misses.

A near miss has another axis, number, operand or order than the formula: the programs include what
rules must not recognise.
"""

import numpy as np

from relax_egraph.ir.expr import Constant, Expr
from relax_egraph.ir.struct_info import Shape
from tests.support.random_writer import Array, Rejected, T, Writer, dtype_of, shape_of

MISS = 0.06
"""The probability of a near miss in a choice within a formula."""


def but(w: Writer, right: T, *wrong: T) -> T:
    """The `right` part of a formula, or sometimes a `wrong` one."""
    return w.choice(wrong) if w.chance(MISS) else right


def number(x: Expr, value: float) -> Constant:
    with np.errstate(over="ignore"):
        return Constant(np.asarray(value, dtype_of(x)))


def weight(w: Writer, x: Expr, extents: Shape, near: float = 0.0) -> Constant:
    """Random numbers around `near` of the dtype of `x`."""
    known = [d for d in extents if isinstance(d, int)]
    if len(known) < len(extents):
        raise Rejected
    data: Array = np.asarray(w.numpy.standard_normal(known) / 2 + near, dtype_of(x))
    return Constant(data)


def floats(w: Writer, rank: int) -> Expr:
    """A float tensor of exactly `rank`."""
    fit = [v for v in w.known if dtype_of(v).startswith("float") and len(shape_of(v)) == rank]
    if not fit:
        raise Rejected
    return w.choice(fit[-4:])


def static(x: Expr, axis: int) -> int:
    """The extent of an axis, which must be constant."""
    extent = shape_of(x)[axis]
    if not isinstance(extent, int):
        raise Rejected
    return extent


def either_way(w: Writer, name: str, a: Expr, b: Expr) -> Expr:
    """`a` and `b` in either order."""
    return w.op(name, *w.choice([(a, b), (b, a)]))
