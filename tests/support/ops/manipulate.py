"""Instances of operators that reshape and permute."""

import math
from collections.abc import Mapping

from tests.support.ops.case import ANY, Case, Draw, Sampler


def permute_dims(draw: Draw) -> Case:
    shape = draw.shape()
    order = draw.random.sample(range(len(shape)), len(shape))
    axes = tuple(a - len(shape) if draw.chance() else a for a in order)
    x = draw.array(shape, draw.choice(ANY))
    return Case((x,), {"axes": axes if draw.chance(0.7) else None})


def reshape(draw: Draw) -> Case:
    shape = draw.shape()
    cut = draw.integer(0, len(shape))
    merged = (math.prod(shape[:cut]), *shape[cut:])
    target = draw.choice([shape, merged, merged[::-1], (1, *shape, 1)])
    return Case((draw.array(shape, draw.choice(ANY)), target))


def flatten(draw: Draw) -> Case:
    return Case((draw.array(draw.shape(), draw.choice(ANY)),))


def broadcast_to(draw: Draw) -> Case:
    whole = draw.shape()
    return Case((draw.array(draw.part(whole), draw.choice(ANY)), whole))


def expand_dims(draw: Draw) -> Case:
    shape, added = draw.shape(), draw.integer(0, 2)
    rank = len(shape) + added
    places = draw.random.sample(range(rank), added)
    axis = tuple(a - rank if draw.chance() else a for a in places)
    return Case((draw.array(shape, draw.choice(ANY)),), {"axis": axis})


def squeeze(draw: Draw) -> Case:
    shape = draw.shape()
    axis = draw.axes(len(shape))
    places = {a % len(shape) for a in axis}
    ones = tuple(1 if k in places else d for k, d in enumerate(shape))
    chosen = axis if draw.chance(0.7) else None
    return Case((draw.array(ones, draw.choice(ANY)),), {"axis": chosen})


def batch_flatten(draw: Draw) -> Case:
    return Case((draw.array(draw.shape(1), draw.choice(ANY)),))


SAMPLERS: Mapping[str, Sampler] = {
    "permute_dims": permute_dims,
    "reshape": reshape,
    "flatten": flatten,
    "broadcast_to": broadcast_to,
    "expand_dims": expand_dims,
    "squeeze": squeeze,
    "nn.batch_flatten": batch_flatten,
}
