"""Instances of normalisations."""

from collections.abc import Mapping

from relax_egraph.ir.expr import Attr
from tests.support.ops.case import FLOATS, Array, Case, Draw, Sampler


def softmax(draw: Draw) -> Case:
    shape = draw.shape(1)
    return Case((draw.array(shape, draw.choice(FLOATS)),), {"axis": draw.axis(len(shape))})


def along(draw: Draw, data: Array, axes: tuple[int, ...]) -> Array:
    """A parameter with the extents of `axes` of `data`."""
    return draw.array([data.shape[a] for a in axes], data.dtype.name)


def switches(draw: Draw) -> dict[str, Attr]:
    return {
        "epsilon": draw.choice([1e-5, 1e-2]),
        "center": draw.chance(0.7),
        "scale": draw.chance(0.7),
    }


def layer_norm(draw: Draw) -> Case:
    data = draw.array(draw.shape(), draw.choice(FLOATS))
    axes = draw.axes(data.ndim)
    operands = (data, along(draw, data, axes), along(draw, data, axes))
    return Case(operands, {"axes": axes, **switches(draw)}, error=2e-5)


def rms_norm(draw: Draw) -> Case:
    data = draw.array(draw.shape(1), draw.choice(FLOATS))
    if draw.chance(0.3):
        return Case((data, along(draw, data, (-1,))), error=2e-5)
    axes = draw.axes(data.ndim)
    return Case(
        (data, along(draw, data, axes)),
        {"axes": axes, "epsilon": draw.choice([1e-5, 1e-2])},
        error=2e-5,
    )


def by_channel(draw: Draw, groups: int) -> tuple[tuple[Array, ...], dict[str, Attr]]:
    """Operands with a multiple of `groups` channels, and the axes and switches."""
    shape = [*draw.shape(1, 4)]
    channel = draw.axis(len(shape))
    shape[channel] = groups * draw.extent()
    data = draw.array(shape, draw.choice(FLOATS))
    rest = [k for k in range(data.ndim) if k != channel % data.ndim]
    axes = tuple(draw.random.sample(rest, draw.integer(0, len(rest))))
    operands = (data, along(draw, data, (channel,)), along(draw, data, (channel,)))
    return operands, {"channel_axis": channel, "axes": axes, **switches(draw)}


def group_norm(draw: Draw) -> Case:
    groups = draw.integer(1, 3)
    operands, attrs = by_channel(draw, groups)
    return Case(operands, {"num_groups": groups, **attrs}, error=2e-5)


def instance_norm(draw: Draw) -> Case:
    operands, attrs = by_channel(draw, 1)
    return Case(operands, attrs, error=2e-5)


def batch_norm(draw: Draw) -> Case:
    data = draw.array(draw.shape(2, 4), draw.choice(FLOATS))
    axis = 1 if draw.chance() else draw.axis(data.ndim)
    gamma, beta, mean, var = (along(draw, data, (axis,)) for _ in range(4))
    attrs: dict[str, Attr] = {
        "axis": axis,
        "momentum": draw.choice([0.1, 0.75]),
        "training": draw.chance(),
        **switches(draw),
    }
    return Case((data, gamma, beta, mean, abs(var)), attrs, error=2e-5)


SAMPLERS: Mapping[str, Sampler] = {
    "nn.softmax": softmax,
    "nn.log_softmax": softmax,
    "nn.layer_norm": layer_norm,
    "nn.rms_norm": rms_norm,
    "nn.group_norm": group_norm,
    "nn.instance_norm": instance_norm,
    "nn.batch_norm": batch_norm,
}
