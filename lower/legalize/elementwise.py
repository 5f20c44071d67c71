"""Elementwise operators with broadcasting."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from relax_egraph.errors import NotLowerable
from relax_egraph.ir.ops.broadcast import broadcast_shapes
from relax_egraph.ir.struct_info import Shape
from relax_egraph.tir import te
from relax_egraph.tir.expr import Buffer, Operand, TirExpr
from relax_egraph.tir.stmt import PrimFunc

Scalar: TypeAlias = Callable[..., TirExpr]
"""An element of the result from one element of each operand."""

Legalize: TypeAlias = Callable[..., te.Tensor | Sequence[te.Tensor] | PrimFunc]
"""Maps operands and attributes of an operator to its result or results, or to a loop function over
the operands."""


def broadcast(*shapes: Shape) -> Shape:
    """The common broadcast shape of `shapes`; raises `NotLowerable` unless it is proven."""
    result: Shape = ()
    for shape in shapes:
        common = broadcast_shapes(result, shape)
        if common is None:
            raise NotLowerable("whether the shapes broadcast is known only at run time")
        result = common
    return result


def element(x: Buffer, shape: Shape, axes: Sequence[Operand]) -> TirExpr:
    """The element of `x`, broadcast to `shape`, at the index `axes`."""
    skipped = len(shape) - len(x.shape)
    at: list[Operand] = [
        0 if extent == 1 and target != 1 else axis
        for extent, target, axis in zip(x.shape, shape[skipped:], axes[skipped:], strict=True)
    ]
    return x[tuple(at)]


def elementwise(name: str, scalar: Scalar, *operands: te.Tensor) -> te.Tensor:
    """``scalar`` of the elements of `operands`, broadcast to one shape."""
    shape = broadcast(*(x.shape for x in operands))
    return te.compute(shape, lambda *i: scalar(*(element(x, shape, i) for x in operands)), name)


def table(scalars: Mapping[str, Scalar]) -> dict[str, Legalize]:
    """The loops of elementwise operators without attributes, from their scalar functions."""
    return {
        name: partial(elementwise, name.rpartition(".")[2], scalar)
        for name, scalar in scalars.items()
    }


def numeric(name: str, x: TirExpr) -> TirExpr:
    """`x`; raises `NotLowerable` for a boolean, which `name` does not support."""
    if x.dtype == "bool":
        raise NotLowerable(f"R.{name} of booleans: needs numbers")
    return x
