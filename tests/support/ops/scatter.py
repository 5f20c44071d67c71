"""Instances of scatters."""

from collections.abc import Mapping

from tests.support.ops.case import ANY, FLOATS, Case, Draw, Sampler
from tests.support.ops.index import indices, leading, rows

REDUCTIONS = ("update", "add", "mul", "max", "min")


def scatter_elements(draw: Draw) -> Case:
    shape = draw.shape(1)
    axis = draw.axis(len(shape))
    reduction = draw.choice((*REDUCTIONS, "mean"))
    dtype = draw.choice(FLOATS if reduction == "mean" else ANY)
    where = [d if draw.chance(0.8) else draw.integer(0, d) for d in shape]
    where[axis] = draw.extent()
    at = indices(draw, where, shape[axis])
    operands = (draw.array(shape, dtype), at, draw.array(where, dtype))
    return Case(operands, {"axis": axis, "reduction": reduction})


def scatter_nd(draw: Draw) -> Case:
    shape, dtype = draw.shape(1), draw.choice(ANY)
    depth = draw.integer(0, len(shape))
    where = draw.shape(0, 2)
    at = rows(draw, where, shape[:depth])
    updates = draw.array((*where, *shape[depth:]), dtype)
    return Case((draw.array(shape, dtype), at, updates), {"reduction": draw.choice(REDUCTIONS)})


def index_put(draw: Draw) -> Case:
    shape, dtype = draw.shape(1), draw.choice(ANY)
    whole, at = leading(draw, shape)
    target = (*whole, *shape[len(at) :])
    values = draw.array(target if draw.chance() else draw.part(target), dtype)
    return Case((draw.array(shape, dtype), at, values), {"accumulate": draw.chance()})


def slice_scatter(draw: Draw) -> Case:
    shape, dtype = draw.shape(1), draw.choice(ANY)
    axis = draw.axis(len(shape))
    extent, step = shape[axis], draw.choice((1, 1, 2, 3))
    start, end = (draw.integer(-extent - 2, extent + 2) for _ in range(2))
    slice_shape = list(shape)
    slice_shape[axis] = len(range(extent)[start:end:step])
    operands = (draw.array(shape, dtype), draw.array(slice_shape, dtype), start, end, step)
    return Case(operands, {"axis": axis})


def masked_fill(draw: Draw) -> Case:
    whole, dtype = draw.shape(), draw.choice(ANY)
    shapes = [whole, draw.part(whole)]
    draw.random.shuffle(shapes)
    value = draw.choice((0.0, 1.0) if dtype == "bool" else (0.0, 1.0, 7.0))
    if dtype in FLOATS:
        value = draw.choice((float("-inf"), -0.5, 1e30))
    return Case((draw.array(shapes[0], dtype), draw.array(shapes[1], "bool")), {"value": value})


SAMPLERS: Mapping[str, Sampler] = {
    "scatter_elements": scatter_elements,
    "scatter_nd": scatter_nd,
    "index_put": index_put,
    "slice_scatter": slice_scatter,
    "masked_fill": masked_fill,
}
