"""Fourier transforms along the last axis, of real and imaginary parts in tensors of their own.

A transform is a product with the matrix of cosines and sines, also for lengths that only the run
knows.  A long transform whose length is known and has factors is done in two steps of the
factors' lengths (Cooley and Tukey 1965).
"""

import math

from relax_egraph.frontends.building.builder import Builder, dtype_of, shape_of
from relax_egraph.frontends.building.complex_parts import Parts, each, imaginary, product
from relax_egraph.frontends.building.dim_tensors import number_of
from relax_egraph.frontends.building.positions import counted
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, ShapeExpr, Tuple

WHOLE = 64
"""The greatest length that is transformed by one product."""


def transformed(
    b: Builder, x: Parts, length: Dim, *, count: Dim | None = None, inverse: bool = False
) -> Parts:
    """The first `count` numbers, by default all, of the transform of `length` along the last axis.

    Longer signals are cut, shorter ones padded with 0.  Nothing is divided by the length.
    """
    count = length if count is None else count
    extent = shape_of(x.real)[-1]
    first = _factor(length) if extent == length else 1
    if first == 1:
        waves = _waves(b, extent, count, length, dtype_of(x.real), inverse)
        return product(b, x, waves, "matmul")
    assert isinstance(length, int)
    whole = _in_two_steps(b, x, first, length // first, inverse)
    return each(whole, lambda part: _cut(b, part, count))


def real_of_half(b: Builder, x: Parts, length: Dim) -> Expr:
    """The inverse transform into `length` real numbers, from the first half of the frequencies.

    Every frequency counts twice, for itself and its mirror image, except the first and a middle
    one.  Nothing is divided by the length.
    """
    extent = shape_of(x.real)[-1]
    if _factor(length) != 1 and extent == dims.add(dims.floordiv(length, 2), 1):
        return transformed(b, _mirrored(b, x, length), length, inverse=True).real
    dtype = dtype_of(x.real)
    row = counted(b, extent, 0, 2)
    twice = b.emit("multiply", row, b.scalar(2, "int64"))
    whole = number_of(b, length, "int64")
    is_first = b.emit("equal", row, b.scalar(0, "int64"))
    is_single = b.emit("logical_or", is_first, b.emit("equal", twice, whole))
    weight = b.emit("where", is_single, b.scalar(1, dtype), b.scalar(2, dtype))
    is_beyond = b.emit("greater", twice, whole)
    weight = b.emit("where", is_beyond, b.scalar(0, dtype), weight)
    waves = _waves(b, extent, length, length, dtype, inverse=True)
    weighted = each(waves, lambda part: b.emit("multiply", part, weight))
    out = b.emit("matmul", x.real, weighted.real)
    if x.imag is None:
        return out
    return b.emit("subtract", out, b.emit("matmul", x.imag, imaginary(b, weighted)))


def _factor(length: Dim) -> int:
    """The factor of a long `length` that is nearest to its root; 1 of others."""
    if not isinstance(length, int) or length <= WHOLE:
        return 1
    return next(k for k in range(math.isqrt(length), 0, -1) if length % k == 0)


def _in_two_steps(b: Builder, x: Parts, first: int, second: int, inverse: bool) -> Parts:
    """The transform of ``first · second`` numbers, of which number ``second · j + k`` is [j, k].

    Number ``p + first · q`` of the result is
    ``Σₖ w(k q / second) w(k p / length) Σⱼ w(j p / first) x[j, k]``, where w(t) is the wave at t.
    """
    *leading, length = shape_of(x.real)
    rank, dtype = len(leading) + 2, dtype_of(x.real)
    turn = (*range(rank - 2), rank - 1, rank - 2)

    def turned(y: Parts) -> Parts:
        return each(y, lambda part: b.emit("permute_dims", part, axes=turn))

    matrix = (*leading, first, second)
    x = each(x, lambda part: b.emit("reshape", part, ShapeExpr(matrix)))
    columns = transformed(b, turned(x), first, inverse=inverse)  # [k, p]
    waves = _waves(b, second, first, length, dtype, inverse)
    rows = transformed(b, turned(product(b, columns, waves)), second, inverse=inverse)
    flat = ShapeExpr((*leading, length))
    return each(turned(rows), lambda part: b.emit("reshape", part, flat))


def _mirrored(b: Builder, x: Parts, length: Dim) -> Parts:
    """All frequencies of `length` real numbers, from the first half: the others are conjugates."""
    end = dims.floordiv(dims.add(length, 1), 2)

    def whole(part: Expr, sign: int) -> Expr:
        rest = b.emit("strided_slice", part, ShapeExpr((1,)), ShapeExpr((end,)), axes=(-1,))
        rest = b.emit("flip", rest, axis=-1)
        rest = rest if sign > 0 else b.emit("negative", rest)
        return b.emit("concat", Tuple((part, rest)), axis=-1)

    return Parts(whole(x.real, 1), None if x.imag is None else whole(x.imag, -1))


def _waves(b: Builder, rows: Dim, columns: Dim, length: Dim, dtype: str, inverse: bool) -> Parts:
    """``e^(∓2πi · row · column / length)``; 0 in rows from `length` on."""
    row, column = counted(b, rows, 0, 2), counted(b, columns, 1, 2)
    whole = number_of(b, length, "int64")
    place = b.emit("floor_mod", b.emit("multiply", row, column), whole)
    circle = 2 * math.pi if inverse else -2 * math.pi
    angle = b.emit("multiply", b.cast(place, "float64"), b.scalar(circle, "float64"))
    angle = b.emit("divide", angle, b.cast(whole, "float64"))
    waves = [b.cast(b.emit(name, angle), dtype) for name in ("cos", "sin")]
    if not dims.prove_ge(length, rows):
        is_inside = b.emit("less", row, whole)
        zero = b.scalar(0, dtype)
        waves = [b.emit("where", is_inside, wave, zero) for wave in waves]
    return Parts(*waves)


def _cut(b: Builder, x: Expr, count: Dim) -> Expr:
    """The first `count` numbers along the last axis."""
    if shape_of(x)[-1] == count:
        return x
    return b.emit("strided_slice", x, ShapeExpr((0,)), ShapeExpr((count,)), axes=(-1,))
