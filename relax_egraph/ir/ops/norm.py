"""Normalisations: softmax, and those by mean and variance, in the namespace ``R.nn``."""

from collections.abc import Mapping

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.broadcast import floating
from relax_egraph.ir.ops.manipulate import normalize_axis
from relax_egraph.ir.ops.operand_checks import has_rank, has_shape, is_vector, one_float, subject_of
from relax_egraph.ir.requirements import differ
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, TupleStructInfo, tensor


@op("nn", fusible=True)
def softmax(x: TensorStructInfo, *, axis: int = -1) -> StructInfo:
    """``out = eˣ / Σ eˣ`` along `axis`, computed of ``x - max x``."""
    if x.ndim >= 0:
        normalize_axis("nn.softmax", x, axis)
    return floating("nn.softmax", x)


@op("nn")
def log_softmax(data: TensorStructInfo, *, axis: int = -1) -> StructInfo:
    """``out = x - log Σ eˣ`` along `axis`, computed of ``x - max x``."""
    if data.ndim >= 0:
        normalize_axis("nn.log_softmax", data, axis)
    return floating("nn.log_softmax", data)


@op("nn")
def layer_norm(
    data: TensorStructInfo,
    gamma: TensorStructInfo,
    beta: TensorStructInfo,
    *,
    axes: tuple[int, ...],
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> StructInfo:
    """``out = (x - mean x) / √(var x + epsilon) · gamma + beta``, mean and variance over `axes`.

    `gamma` and `beta` have the extents of `axes`, in that order.  Without `scale` there is no
    `gamma` in the formula, without `center` no `beta`.
    """
    return _along("nn.layer_norm", data, {"gamma": gamma, "beta": beta}, axes)


@op("nn")
def rms_norm(
    data: TensorStructInfo,
    weight: TensorStructInfo,
    *,
    axes: tuple[int, ...] = (-1,),
    epsilon: float = 1e-5,
) -> StructInfo:
    """``out = x / √(mean x² + epsilon) · weight``, the mean over `axes`.

    `weight` has the extents of `axes`, in that order.
    """
    return _along("nn.rms_norm", data, {"weight": weight}, axes)


@op("nn")
def group_norm(
    data: TensorStructInfo,
    gamma: TensorStructInfo,
    beta: TensorStructInfo,
    *,
    num_groups: int,
    channel_axis: int,
    axes: tuple[int, ...],
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> StructInfo:
    """``out = (x - mean x) / √(var x + epsilon) · gamma + beta``, by groups of channels.

    Mean and variance are over `axes` and the channels of one of `num_groups` equal runs of them;
    `gamma` and `beta` are vectors over the channels.  Without `scale` there is no `gamma` in the
    formula, without `center` no `beta`.
    """
    name = "nn.group_norm"
    subject = subject_of(name, data, gamma, beta)
    if num_groups < 1:
        raise IllTyped(f"{subject}: num_groups is {num_groups}, needs at least 1")
    channels = _by_channel(name, data, {"gamma": gamma, "beta": beta}, channel_axis, axes)
    if channels is not None and differ(dims.mod(channels, num_groups), 0):
        raise IllTyped(
            f"{subject}: {dims.text(channels)} channels are not divided by num_groups {num_groups}"
        )
    return tensor(data.dims, data.dtype, data.ndim)


@op("nn")
def instance_norm(
    data: TensorStructInfo,
    gamma: TensorStructInfo,
    beta: TensorStructInfo,
    *,
    channel_axis: int,
    axes: tuple[int, ...],
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> StructInfo:
    """``out = (x - mean x) / √(var x + epsilon) · gamma + beta``, mean and variance over `axes`.

    `gamma` and `beta` are vectors over the channels.  Without `scale` there is no `gamma` in the
    formula, without `center` no `beta`.
    """
    parameters = {"gamma": gamma, "beta": beta}
    _by_channel("nn.instance_norm", data, parameters, channel_axis, axes)
    return tensor(data.dims, data.dtype, data.ndim)


@op("nn")
def batch_norm(
    data: TensorStructInfo,
    gamma: TensorStructInfo,
    beta: TensorStructInfo,
    moving_mean: TensorStructInfo,
    moving_var: TensorStructInfo,
    *,
    axis: int = 1,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    momentum: float = 0.1,
    training: bool = True,
) -> StructInfo:
    """``out = (x - m) / √(v + epsilon) · gamma + beta``, and the new moving mean and variance.

    In training `m` and `v` are mean and variance over all axes but `axis`, and the moving ones
    become ``(1 - momentum) · moving + momentum · batch``; otherwise `m` and `v` are the moving
    ones, which stay.  A moving variance is not negative.  Without `scale` there is no `gamma` in
    the formula, without `center` no `beta`.
    """
    parameters = {
        "gamma": gamma,
        "beta": beta,
        "moving_mean": moving_mean,
        "moving_var": moving_var,
    }
    out = _along("nn.batch_norm", data, parameters, (axis,))
    channels = None if data.dims is None else (data.dims[axis % data.ndim],)
    moving = (tensor(channels or p.dims, data.dtype, 1) for p in (moving_mean, moving_var))
    return TupleStructInfo((out, *moving))


def _along(
    name: str,
    data: TensorStructInfo,
    parameters: Mapping[str, TensorStructInfo],
    axes: tuple[int, ...],
) -> TensorStructInfo:
    """The result's struct info; `parameters` have the extents of `axes`, in that order."""
    subject = subject_of(name, data, *parameters.values())
    one_float(subject, data, *parameters.values())
    places = _distinct(name, data, axes)
    known = data.dims
    wanted = None if known is None else tuple(known[p] for p in places)
    for what, info in parameters.items():
        has_rank(subject, what, info, len(axes))
        has_shape(subject, what, info, wanted)
    return tensor(data.dims, data.dtype, data.ndim)


def _by_channel(
    name: str,
    data: TensorStructInfo,
    parameters: Mapping[str, TensorStructInfo],
    channel_axis: int,
    axes: tuple[int, ...],
) -> Dim | None:
    """The extent of the channel axis, not one of `axes`; `parameters` are vectors of it."""
    subject = subject_of(name, data, *parameters.values())
    one_float(subject, data, *parameters.values())
    places = _distinct(name, data, axes)
    channel = normalize_axis(name, data, channel_axis) if data.ndim >= 0 else channel_axis
    if channel in places:
        raise IllTyped(f"{subject}: axes {list(axes)} have the channel axis {channel_axis}")
    extent = None if data.dims is None else data.dims[channel]
    for what, info in parameters.items():
        is_vector(subject, what, info, extent)
    return extent


def _distinct(name: str, data: TensorStructInfo, axes: tuple[int, ...]) -> tuple[int, ...]:
    """`axes`, counted from the front if the rank is known; raises `IllTyped` if one is repeated."""
    places = tuple(normalize_axis(name, data, a) for a in axes) if data.ndim >= 0 else axes
    if len(set(places)) != len(places):
        raise IllTyped(f"R.{name} of {data}: axes {list(axes)} repeat an axis")
    return places
