"""Tensors of complex numbers as tensors of their parts, as no value of ours is complex."""

from collections.abc import Callable
from dataclasses import dataclass

from relax_egraph.frontends.building.builder import Builder
from relax_egraph.ir.expr import Expr, Tuple


@dataclass(frozen=True, slots=True)
class Parts:
    """A tensor of complex numbers: tensors of their parts; ``None`` for imaginary parts of 0."""

    real: Expr
    imag: Expr | None = None


def parted(b: Builder, whole: Expr) -> Parts:
    """The parts of a tensor of reals whose last axis has them."""
    real, imag = (b.emit("take", whole, b.scalar(k, "int64"), axis=-1) for k in range(2))
    return Parts(real, imag)


def joined(b: Builder, x: Parts) -> Expr:
    """The parts of `x` along a new last axis."""
    return b.emit("stack", Tuple((x.real, imaginary(b, x))), axis=-1)


def imaginary(b: Builder, x: Parts) -> Expr:
    """The imaginary part of `x`, which may be 0."""
    return b.emit("zeros_like", x.real) if x.imag is None else x.imag


def each(x: Parts, function: Callable[[Expr], Expr]) -> Parts:
    """`function` of each part."""
    return Parts(function(x.real), None if x.imag is None else function(x.imag))


def product(b: Builder, x: Parts, y: Parts, name: str = "multiply") -> Parts:
    """The product of `x` and `y` by the operator `name`, elementwise or of matrices."""

    def times(left: Expr, right: Expr) -> Expr:
        return b.emit(name, left, right)

    if y.imag is None:
        return each(x, lambda part: times(part, y.real))
    if x.imag is None:
        return Parts(times(x.real, y.real), times(x.real, y.imag))
    real = b.emit("subtract", times(x.real, y.real), times(x.imag, y.imag))
    return Parts(real, b.emit("add", times(x.real, y.imag), times(x.imag, y.real)))
