"""Normalisations by mean and variance: two passes over the data, and one to normalise it."""

from collections.abc import Callable
from dataclasses import dataclass

from relax_egraph.errors import NotLowerable
from relax_egraph.ir import dims
from relax_egraph.lower.legalize.proven import need_equal
from relax_egraph.lower.legalize.reduce import divided
from relax_egraph.lower.legalize.sets import Index, Sets
from relax_egraph.tir import te
from relax_egraph.tir.expr import TirExpr, TirVar
from relax_egraph.tir.tensor import Reduction

Element = Callable[[Index], TirExpr]
"""Maps an index to the element."""


def layer_norm(
    data: te.Tensor,
    gamma: te.Tensor,
    beta: te.Tensor,
    *,
    axes: tuple[int, ...],
    epsilon: float,
    center: bool,
    scale: bool,
) -> te.Tensor:
    """The mean, the reciprocal of the standard deviation, and the result."""
    places = _places(data, axes)
    affine = _Affine(data, places, gamma if scale else None, beta if center else None)
    return _standardized(data, Sets(data.shape, places), epsilon, affine, "layer_norm")


def rms_norm(
    data: te.Tensor, weight: te.Tensor, *, axes: tuple[int, ...], epsilon: float
) -> te.Tensor:
    """The reciprocal root of the mean of squares, and the result."""
    places = _places(data, axes)
    affine, sets = _Affine(data, places, weight, None), Sets(data.shape, places)
    squares = _mean(sets, lambda i: data[i] * data[i], "rms_norm_square")
    factor = _reciprocal_root(squares, epsilon, "rms_norm_factor")
    return te.compute(data.shape, lambda *i: affine.of(data[i] * factor[sets.of(i)], i), "rms_norm")


def group_norm(
    data: te.Tensor,
    gamma: te.Tensor,
    beta: te.Tensor,
    *,
    num_groups: int,
    channel_axis: int,
    axes: tuple[int, ...],
    epsilon: float,
    center: bool,
    scale: bool,
) -> te.Tensor:
    """`layer_norm` of each group of channels; the groups are proven to be equal in size."""
    channel, places = channel_axis % len(data.shape), _places(data, axes)
    channels = data.shape[channel]
    if not dims.divides(num_groups, channels):
        raise NotLowerable("whether the channels divide into groups is known only at run time")
    affine = _Affine(data, (channel,), gamma if scale else None, beta if center else None)
    if channels == 0:
        return te.compute(data.shape, lambda *i: data[i], "group_norm")
    size = dims.floordiv(channels, num_groups)
    sets = Sets(data.shape, places, channel, size)
    return _standardized(data, sets, epsilon, affine, "group_norm")


def instance_norm(
    data: te.Tensor,
    gamma: te.Tensor,
    beta: te.Tensor,
    *,
    channel_axis: int,
    axes: tuple[int, ...],
    epsilon: float,
    center: bool,
    scale: bool,
) -> te.Tensor:
    """`layer_norm` with parameters along the channels."""
    channel = channel_axis % len(data.shape)
    affine = _Affine(data, (channel,), gamma if scale else None, beta if center else None)
    sets = Sets(data.shape, _places(data, axes))
    return _standardized(data, sets, epsilon, affine, "instance_norm")


def batch_norm(
    data: te.Tensor,
    gamma: te.Tensor,
    beta: te.Tensor,
    moving_mean: te.Tensor,
    moving_var: te.Tensor,
    *,
    axis: int,
    epsilon: float,
    center: bool,
    scale: bool,
    momentum: float,
    training: bool,
) -> tuple[te.Tensor, ...]:
    """The result and the new moving mean and variance, which change only in training."""
    place = axis % len(data.shape)
    affine = _Affine(data, (place,), gamma if scale else None, beta if center else None)
    moving = (moving_mean, moving_var)
    for statistic in moving:
        need_equal(statistic.shape, (data.shape[place],))
    sets = Sets(data.shape, tuple(k for k in range(len(data.shape)) if k != place))
    mean, var = _moments(data, sets, "batch_norm") if training else moving
    factor = _reciprocal_root(var, epsilon, "batch_norm_factor")
    out = te.compute(
        data.shape,
        lambda *i: affine.of((data[i] - mean[i[place]]) * factor[i[place]], i),
        "batch_norm",
    )
    if not training:
        return out, *moving
    old, new = te.const(1 - momentum, data.dtype), te.const(momentum, data.dtype)
    updated = (
        te.compute(o.shape, lambda c, o=o, b=b: old * o[c] + new * b[c], f"batch_norm_{what}")
        for o, b, what in ((moving_mean, mean, "mean"), (moving_var, var, "var"))
    )
    return out, *updated


@dataclass(frozen=True, slots=True)
class _Affine:
    """The affine map after a normalisation: a factor and a summand, along `places` of `data`."""

    data: te.Tensor
    places: tuple[int, ...]
    gamma: te.Tensor | None
    beta: te.Tensor | None

    def __post_init__(self) -> None:
        for parameter in (self.gamma, self.beta):
            if parameter is not None:
                need_equal(parameter.shape, tuple(self.data.shape[p] for p in self.places))

    def of(self, x: TirExpr, i: Index) -> TirExpr:
        """`x`, the normalised element at `i`, scaled and shifted."""
        at = tuple(i[p] for p in self.places)
        scaled = x if self.gamma is None else x * self.gamma[at]
        return scaled if self.beta is None else scaled + self.beta[at]


def _places(data: te.Tensor, axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a % len(data.shape) for a in axes)


def _standardized(
    data: te.Tensor, sets: Sets, epsilon: float, affine: _Affine, name: str
) -> te.Tensor:
    mean, var = _moments(data, sets, name)
    factor = _reciprocal_root(var, epsilon, f"{name}_factor")

    def value(*i: TirVar) -> TirExpr:
        own = sets.of(i)
        return affine.of((data[i] - mean[own]) * factor[own], i)

    return te.compute(data.shape, value, name)


def _moments(data: te.Tensor, sets: Sets, name: str) -> tuple[te.Tensor, te.Tensor]:
    """The mean and the variance of each set."""
    mean = _mean(sets, lambda i: data[i], f"{name}_mean")

    def squared(i: Index) -> TirExpr:
        deviation = data[i] - mean[sets.of(i)]
        return deviation * deviation

    return mean, _mean(sets, squared, f"{name}_var")


def _mean(sets: Sets, element: Element, name: str) -> te.Tensor:
    """The mean of `element` over each set; NaN for empty sets."""

    def total(*s: TirVar) -> TirExpr | Reduction:
        index, axes = sets.members(s)
        return te.sum(element(index), axes) if axes else element(index)

    return divided(te.compute(sets.shape, total, f"{name}_sum"), sets.count, name)


def _reciprocal_root(x: te.Tensor, epsilon: float, name: str) -> te.Tensor:
    least = te.const(epsilon, x.dtype)
    return te.compute(x.shape, lambda *s: te.rsqrt(x[s] + least), name)
