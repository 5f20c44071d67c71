"""Instances of gathers and slices."""

from collections.abc import Mapping, Sequence

import numpy as np

from tests.support.ops.case import ANY, INTEGERS, Array, Case, Draw, Sampler


def indices(draw: Draw, shape: Sequence[int], extent: int) -> Array:
    """Indices into an axis of `extent`, from either end, some of them out of range."""
    reach = extent + 2 if draw.chance(0.2) else max(extent, 1)
    return draw.array(shape, draw.choice(INTEGERS), -reach, reach - 1)


def take(draw: Draw) -> Case:
    mode = draw.choice(("fast", "clip", "wrap", "nan"))
    shape = draw.shape(1)
    axis = draw.axis(len(shape))
    if len(shape) == 1 and draw.chance():
        attrs = {"axis": None, "mode": mode}
    else:
        attrs = {"axis": axis, "mode": mode}
    x = draw.array(shape, draw.choice(("float32", "float64") if mode == "nan" else ANY))
    return Case((x, indices(draw, draw.shape(0, 2), shape[axis])), attrs)


def check_indices(draw: Draw) -> Case:
    shape = draw.shape(1, 3, 1)
    axes = tuple(draw.integer(0, len(shape) - 1) for _ in range(draw.choice((1, 1, 2, 3))))
    where = (*draw.shape(0, 2), *(() if len(axes) == 1 else (len(axes),)))
    reach = min(shape[a] for a in axes)
    from_end = draw.chance()
    at = draw.array(where, draw.choice(INTEGERS), -reach * from_end, reach - 1)
    attrs = {"axes": axes, "operator": draw.choice(("", "Gather")), "from_end": from_end}
    return Case((at, shape), attrs)


def gather_elements(draw: Draw) -> Case:
    shape = draw.shape(1)
    axis = draw.axis(len(shape))
    where = [d if draw.chance(0.8) else draw.integer(0, d) for d in shape]
    where[axis] = draw.extent()
    data = draw.array(shape, draw.choice(ANY))
    return Case((data, indices(draw, where, shape[axis])), {"axis": axis})


def rows(draw: Draw, where: Sequence[int], extents: Sequence[int]) -> Array:
    """A row of indices into axes of `extents` for each point of `where`."""
    columns = [indices(draw, where, d).astype(np.int64) for d in extents]
    dtype = draw.choice(("int32", "int64"))
    return np.stack(columns, -1).astype(dtype) if columns else np.zeros((*where, 0), dtype)


def gather_nd(draw: Draw) -> Case:
    shape = draw.shape(1)
    batch = draw.integer(0, len(shape) - 1)
    depth = draw.integer(0, len(shape) - batch)
    where = (*shape[:batch], *draw.shape(0, 2))
    at = rows(draw, where, shape[batch : batch + depth])
    return Case((draw.array(shape, draw.choice(ANY)), at), {"batch_dims": batch})


def leading(draw: Draw, shape: Sequence[int]) -> tuple[tuple[int, ...], tuple[Array, ...]]:
    """A shape, and tensors that broadcast to it: indices into leading axes of `shape`."""
    whole = draw.shape(0, 2)
    extents = shape[: draw.integer(1, len(shape))]
    shapes = [whole, *(draw.part(whole) for _ in extents[1:])]
    draw.random.shuffle(shapes)
    return whole, tuple(indices(draw, s, d) for s, d in zip(shapes, extents, strict=True))


def index_tensor(draw: Draw) -> Case:
    shape = draw.shape(1)
    return Case((draw.array(shape, draw.choice(ANY)), leading(draw, shape)[1]))


def strided_slice(draw: Draw) -> Case:
    shape = draw.shape(1)
    x = draw.array(shape, draw.choice(ANY))
    axes = draw.axes(len(shape))
    extents = [shape[a] for a in axes]
    inbound = draw.chance(0.3)
    strides = tuple(draw.choice((1, 1, 2, 3, -1, -2)) for _ in axes)
    if inbound:
        strides = tuple(map(abs, strides))
        begin = tuple(draw.integer(0, d) for d in extents)
        end = tuple(draw.integer(b, d) for b, d in zip(begin, extents, strict=True))
    else:
        begin = tuple(draw.integer(-d - 2, d + 2) for d in extents)
        end = tuple(draw.choice((d, draw.integer(-d - 2, d + 2), 2**63 - 1)) for d in extents)
    attr_strides = strides if draw.chance(0.7) or any(s != 1 for s in strides) else None
    attrs = {"axes": axes, "strides": attr_strides, "assume_inbound": inbound}
    return Case((x, begin, end), attrs)


def dynamic_strided_slice(draw: Draw) -> Case:
    shape = draw.shape()
    ends = [[draw.integer(-d - 2, d + 2) for d in shape] for _ in range(2)]
    strides = [draw.choice((1, 2, -1, -2)) for _ in shape]
    x = draw.array(shape, draw.choice(ANY))
    return Case((x, *(np.array(n, np.int64) for n in (*ends, strides))))


SAMPLERS: Mapping[str, Sampler] = {
    "take": take,
    "check_indices": check_indices,
    "gather_elements": gather_elements,
    "gather_nd": gather_nd,
    "index_tensor": index_tensor,
    "strided_slice": strided_slice,
    "dynamic_strided_slice": dynamic_strided_slice,
}
