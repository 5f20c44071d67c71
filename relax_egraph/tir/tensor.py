"""Tensors with the rules that compute their elements."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias, overload

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import computed, is_stored
from relax_egraph.ir.expr import Expr
from relax_egraph.tir.expr import Buffer, BufferLoad, Imm, Operand, TirExpr, TirVar, as_expr
from relax_egraph.tir.scalar import cast, const, greatest, least

Combine: TypeAlias = Literal["+", "*", "min", "max"]
"""The function of a reduction of two values."""


@dataclass(frozen=True, slots=True, eq=False)
class ReduceAxis(TirVar):
    """A variable of a reduction, from 0 to `extent`."""

    extent: Dim = 1


@dataclass(frozen=True, slots=True)
class Reduction:
    """``combine`` over all values of `axes`, from `identity`: the whole body of a `compute`."""

    combine: Combine
    source: TirExpr
    axes: tuple[ReduceAxis, ...]
    identity: Imm


Body: TypeAlias = TirExpr | Reduction


@dataclass(frozen=True, slots=True, eq=False)
class Tensor(Buffer):
    """A buffer with the rule for its elements: ``body`` at ``axes``; a placeholder has no body.

    ``A[i, j]`` is an element, for use in the body of another tensor.  A placeholder may stand for
    a `value` of the graph: see `te_tensor`.
    """

    axes: tuple[TirVar, ...] = ()
    body: Body | None = None
    value: Expr | None = None

    def at(self, *indices: Operand) -> BufferLoad:
        """The element at `indices`: a `compute` of it is a copy."""
        return self[indices]

    @property
    def source(self) -> TirExpr | None:
        """The expression over the elements of other tensors; ``None`` for a placeholder."""
        return self.body.source if isinstance(self.body, Reduction) else self.body

    @property
    def reduce_axes(self) -> tuple[ReduceAxis, ...]:
        """The axes that a reduction sums over."""
        return self.body.axes if isinstance(self.body, Reduction) else ()


def placeholder(shape: Sequence[Dim], dtype: str = "float32", name: str = "placeholder") -> Tensor:
    """A tensor without a rule: a parameter."""
    return Tensor(name, tuple(dims.canonical(d) for d in shape), dtype)


Element: TypeAlias = Body | Operand
"""The possible results of the function of a `compute`."""


class _OfAll(Protocol):
    """A function of any number of variables."""

    def __call__(self, *axes: TirVar) -> Element: ...


# The overloads differ in the number of axes only, so that the parameters of a lambda get types.
@overload
def compute(shape: Sequence[Dim], fcompute: _OfAll, name: str = "compute") -> Tensor: ...
@overload
def compute(
    shape: Sequence[Dim], fcompute: Callable[[], Element], name: str = "compute"
) -> Tensor: ...
@overload
def compute(
    shape: Sequence[Dim], fcompute: Callable[[TirVar], Element], name: str = "compute"
) -> Tensor: ...
@overload
def compute(
    shape: Sequence[Dim], fcompute: Callable[[TirVar, TirVar], Element], name: str = "compute"
) -> Tensor: ...
@overload
def compute(
    shape: Sequence[Dim], fcompute: Callable[..., Element], name: str = "compute"
) -> Tensor: ...
def compute(
    shape: Sequence[Dim], fcompute: Callable[..., Element], name: str = "compute"
) -> Tensor:
    """The tensor whose element at ``(i0, i1, …)`` is ``fcompute(i0, i1, …)``.

    Sums and products of a storage type are computed in its wider dtype, by a tensor of their own.
    """
    extents = tuple(dims.canonical(d) for d in shape)
    axes = tuple(TirVar(f"i{k}") for k in range(len(shape)))
    value = fcompute(*axes)
    body = value if isinstance(value, Reduction) else as_expr(value)
    dtype = body.source.dtype if isinstance(body, Reduction) else body.dtype
    if isinstance(body, Reduction) and body.combine in ("+", "*") and is_stored(dtype):
        wide = computed(dtype)
        source, identity = cast(body.source, wide), const(body.identity.value, wide)
        total = replace(body, source=source, identity=identity)
        exact = Tensor(f"{name}_{wide}", extents, wide, axes=axes, body=total)
        return compute(shape, lambda *i: cast(exact[i], dtype), name)
    return Tensor(name, extents, dtype, axes=axes, body=body)


def reduce_axis(extent: Dim, name: str = "k0") -> ReduceAxis:
    """An axis for `sum`, `prod`, `max` and `min` to run over."""
    return ReduceAxis(name, extent=dims.canonical(extent))


Axes: TypeAlias = ReduceAxis | Sequence[ReduceAxis]


def sum(expr: TirExpr, axis: Axes) -> Reduction:  # the name of the operation
    """``Σ expr`` over `axis`; 0 over nothing.  Of booleans, whether any holds."""
    combine: Combine = "max" if expr.dtype == "bool" else "+"
    return _reduction(combine, expr, axis, const(0, expr.dtype))


def prod(expr: TirExpr, axis: Axes) -> Reduction:
    """``Π expr`` over `axis`; 1 over nothing.  Of booleans, whether all hold."""
    combine: Combine = "min" if expr.dtype == "bool" else "*"
    return _reduction(combine, expr, axis, const(1, expr.dtype))


def max(expr: TirExpr, axis: Axes) -> Reduction:  # the name of the operation
    """The greatest `expr` over `axis`, NaN if one is; the dtype's least value over nothing."""
    return _reduction("max", expr, axis, const(least(expr.dtype), expr.dtype))


def min(expr: TirExpr, axis: Axes) -> Reduction:  # the name of the operation
    """The least `expr` over `axis`, NaN if one is; the dtype's greatest value over nothing."""
    return _reduction("min", expr, axis, const(greatest(expr.dtype), expr.dtype))


def _reduction(combine: Combine, source: TirExpr, axis: Axes, identity: Imm) -> Reduction:
    axes = (axis,) if isinstance(axis, ReduceAxis) else tuple(axis)
    return Reduction(combine, source, axes, identity)
