"""Instances of operators that join, split, repeat and reverse tensors."""

from collections.abc import Mapping

from tests.support.ops.case import ANY, Case, Draw, Sampler


def concat(draw: Draw) -> Case:
    count, dtype = draw.integer(1, 4), draw.choice(ANY)
    if draw.chance(0.2):
        parts = tuple(draw.array(draw.shape(), dtype) for _ in range(count))
        return Case((parts,), {"axis": None})
    shape = draw.shape(1)
    axis = draw.axis(len(shape))
    place = axis % len(shape)
    shapes = [(*shape[:place], draw.extent(), *shape[place + 1 :]) for _ in range(count)]
    return Case((tuple(draw.array(s, dtype) for s in shapes),), {"axis": axis})


def stack(draw: Draw) -> Case:
    shape, dtype = draw.shape(), draw.choice(ANY)
    parts = tuple(draw.array(shape, dtype) for _ in range(draw.integer(1, 4)))
    return Case((parts,), {"axis": draw.axis(len(shape) + 1)})


def split(draw: Draw) -> Case:
    shape = draw.shape(1)
    cuts = tuple(sorted(draw.extent() for _ in range(draw.integer(0, 3))))
    parts = draw.choice([draw.integer(1, 5), cuts])
    x = draw.array(shape, draw.choice(ANY))
    return Case((x,), {"indices_or_sections": parts, "axis": draw.axis(len(shape))})


def tile(draw: Draw) -> Case:
    repeats = tuple(draw.integer(0, 3) for _ in range(draw.integer(0, 4)))
    return Case((draw.array(draw.shape(), draw.choice(ANY)),), {"repeats": repeats})


def repeat(draw: Draw) -> Case:
    shape = draw.shape()
    axis = draw.axis(len(shape)) if shape and draw.chance(0.7) else None
    x = draw.array(shape, draw.choice(ANY))
    return Case((x,), {"repeats": draw.integer(0, 3), "axis": axis})


def flip(draw: Draw) -> Case:
    shape = draw.shape(1)
    return Case((draw.array(shape, draw.choice(ANY)),), {"axis": draw.axis(len(shape))})


def meshgrid(draw: Draw) -> Case:
    parts = tuple(draw.array((draw.extent(),), draw.choice(ANY)) for _ in range(draw.integer(1, 3)))
    return Case((parts,), {"indexing": draw.choice(["ij", "xy"])})


def reverse_sequence(draw: Draw) -> Case:
    shape = draw.shape(2, 4)
    seq_axis, batch_axis = draw.random.sample(range(len(shape)), 2)
    lengths = draw.array((shape[batch_axis],), draw.choice(["int32", "int64"]), -2, 8)
    attrs = {"seq_axis": seq_axis - draw.choice([0, len(shape)]), "batch_axis": batch_axis}
    return Case((draw.array(shape, draw.choice(ANY)), lengths), attrs)


SAMPLERS: Mapping[str, Sampler] = {
    "concat": concat,
    "stack": stack,
    "split": split,
    "tile": tile,
    "repeat": repeat,
    "flip": flip,
    "meshgrid": meshgrid,
    "reverse_sequence": reverse_sequence,
}
