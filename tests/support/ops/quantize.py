"""Instances of quantisation."""

from collections.abc import Mapping, Sequence

from tests.support.ops.case import FLOATS, Array, Case, Draw, Sampler

NARROW = ("int8", "uint8", "int16", "uint16")


def parameter(
    draw: Draw, data: Array, axis: int, dtypes: Sequence[str], low: float, high: float
) -> Array:
    """A number, or a vector along `axis`."""
    shapes = [(), (1,), (data.shape[axis],)] if data.ndim else [(), (1,)]
    return draw.array(draw.choice(shapes), draw.choice(dtypes), low, high)


def quantize(draw: Draw) -> Case:
    dtype = draw.choice(FLOATS)
    data = draw.array(draw.shape(), dtype, -30, 30)
    axis = draw.axis(data.ndim) if data.ndim else -1
    scale = parameter(draw, data, axis, (dtype,), 0.1, 2)
    zero_point = parameter(draw, data, axis, NARROW, -100, 100)
    return Case((data, scale, zero_point), {"axis": axis, "out_dtype": draw.choice(NARROW)})


def dequantize(draw: Draw) -> Case:
    data = draw.array(draw.shape(), draw.choice((*NARROW, "int32")), -120, 120)
    axis = draw.axis(data.ndim) if data.ndim else -1
    scale = parameter(draw, data, axis, FLOATS, 0.1, 2)
    zero_point = parameter(draw, data, axis, NARROW, -100, 100)
    return Case((data, scale, zero_point), {"axis": axis, "out_dtype": draw.choice(FLOATS)})


SAMPLERS: Mapping[str, Sampler] = {"quantize": quantize, "dequantize": dequantize}
