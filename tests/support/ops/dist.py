"""Instances of values over several devices."""

from collections.abc import Mapping

from tests.support.ops.case import ANY, NUMBERS, Case, Draw, Sampler


def shard(draw: Draw) -> Case:
    parts, shape = draw.integer(1, 3), [*draw.shape(1)]
    axis = draw.axis(len(shape))
    shape[axis] *= parts
    return Case((draw.array(shape, draw.choice(ANY)),), {"parts": parts, "axis": axis})


def replicate(draw: Draw) -> Case:
    return Case((draw.array(draw.shape(), draw.choice(ANY)),), {"parts": draw.integer(1, 3)})


def all_gather(draw: Draw) -> Case:
    shape = draw.shape(1)
    axis = draw.axis(len(shape))
    return Case((draw.array((draw.integer(1, 3), *shape), draw.choice(ANY)),), {"axis": axis})


def all_reduce(draw: Draw) -> Case:
    return Case((draw.array((draw.integer(1, 3), *draw.shape()), draw.choice(NUMBERS)),))


SAMPLERS: Mapping[str, Sampler] = {
    "dist.shard": shard,
    "dist.replicate": replicate,
    "dist.all_gather": all_gather,
    "dist.all_reduce": all_reduce,
}
