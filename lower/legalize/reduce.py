"""Reductions over axes."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from relax_egraph.errors import NotLowerable
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.struct_info import Shape
from relax_egraph.lower.legalize.elementwise import Legalize
from relax_egraph.tir import te
from relax_egraph.tir.expr import Operand, TirExpr, TirVar, from_dim
from relax_egraph.tir.tensor import Reduction

T = TypeVar("T")

Axis = tuple[int, ...] | None
"""The axes to reduce; ``None`` for all of them."""


def without(items: Sequence[T], places: Sequence[int]) -> tuple[T, ...]:
    """`items` without those at `places`."""
    return tuple(item for k, item in enumerate(items) if k not in places)


def sum_(x: te.Tensor, *, axis: Axis, keepdims: bool) -> te.Tensor:
    """``Σ x``; for booleans, their disjunction."""
    return _reduced(te.sum, x, axis, keepdims, "sum")


def max_(x: te.Tensor, *, axis: Axis, keepdims: bool) -> te.Tensor:
    """The maximal element."""
    return _reduced(te.max, x, axis, keepdims, "max")


def min_(x: te.Tensor, *, axis: Axis, keepdims: bool) -> te.Tensor:
    """The minimal element."""
    return _reduced(te.min, x, axis, keepdims, "min")


def mean(x: te.Tensor, *, axis: Axis, keepdims: bool) -> te.Tensor:
    """The sum divided by the count; NaN for empty reductions."""
    total = _reduced(te.sum, x, axis, keepdims, "mean_sum")
    return divided(total, dims.product(x.shape[k] for k in _places(x, axis)), "mean")


def divided(sums: te.Tensor, count: Dim, name: str) -> te.Tensor:
    """The means of `count` elements each, from their `sums`."""
    is_constant = isinstance(count, int)
    divisor = te.const(count, sums.dtype) if is_constant else te.cast(from_dim(count), sums.dtype)
    return te.compute(sums.shape, lambda *i: sums[i] / divisor, name)


def prod(x: te.Tensor, *, axis: Axis, keepdims: bool) -> te.Tensor:
    """``Π x``; for booleans, their conjunction."""
    return _reduced(te.prod, x, axis, keepdims, "prod")


def variance(x: te.Tensor, *, axis: Axis, keepdims: bool) -> te.Tensor:
    """The mean, and the mean of squared differences from it."""
    places = _places(x, axis)
    middle = mean(x, axis=axis, keepdims=True)

    def squared(*i: TirVar) -> TirExpr:
        at: list[Operand] = [0 if k in places else v for k, v in enumerate(i)]
        deviation = x[i] - middle[tuple(at)]
        return deviation * deviation

    return mean(te.compute(x.shape, squared, "squared"), axis=axis, keepdims=keepdims)


def std(x: te.Tensor, *, axis: Axis, keepdims: bool) -> te.Tensor:
    """The square root of the variance."""
    squared = variance(x, axis=axis, keepdims=keepdims)
    return te.compute(squared.shape, lambda *i: te.sqrt(squared[i]), "std")


def collapse_sum_to(data: te.Tensor, shape: Shape) -> te.Tensor:
    """The sum over the axes that `shape` lacks, or has with extent 1."""
    extra = len(data.shape) - len(shape)
    for extent, target in zip(data.shape[extra:], shape, strict=True):
        if target != 1 and not dims.equal(extent, target):
            raise NotLowerable("whether the shape broadcasts is known only at run time")
    repeated = [k + extra for k, target in enumerate(shape) if target == 1]
    total = sum_(data, axis=(*range(extra), *repeated), keepdims=True)
    zeros = (0,) * extra
    return te.compute(shape, lambda *i: total[(*zeros, *i)], "collapse_sum")


def collapse_sum_like(data: te.Tensor, collapse_target: te.Tensor) -> te.Tensor:
    """The sum over the axes that `collapse_target` lacks, or has with extent 1."""
    return collapse_sum_to(data, collapse_target.shape)


def _places(x: te.Tensor, axis: Axis) -> tuple[int, ...]:
    rank = len(x.shape)
    return tuple(range(rank)) if axis is None else tuple(sorted(a % rank for a in axis))


def _reduced(
    reduce: Callable[[TirExpr, list[te.ReduceAxis]], Reduction],
    x: te.Tensor,
    axis: Axis,
    keepdims: bool,
    name: str,
) -> te.Tensor:
    places = _places(x, axis)
    axes = {p: te.reduce_axis(x.shape[p], f"k{k}") for k, p in enumerate(places)}

    def value(*i: TirExpr) -> TirExpr | Reduction:
        kept = iter(without(i, places) if keepdims else i)
        source = x[tuple(axes[k] if k in axes else next(kept) for k in range(len(x.shape)))]
        return reduce(source, [*axes.values()]) if axes else source

    return te.compute(reduced_shape(x.shape, places, keepdims=keepdims), value, name)


def reduced_shape(shape: Shape, places: Sequence[int], *, keepdims: bool) -> Shape:
    """`shape` without the axes at `places`, or, with `keepdims`, with extent 1 there."""
    if keepdims:
        return tuple(1 if k in places else d for k, d in enumerate(shape))
    return without(shape, places)


LEGALIZE: Mapping[str, Legalize] = {
    **{"sum": sum_, "max": max_, "min": min_, "mean": mean, "prod": prod},
    **{"variance": variance, "std": std},
    **{"collapse_sum_to": collapse_sum_to, "collapse_sum_like": collapse_sum_like},
}
