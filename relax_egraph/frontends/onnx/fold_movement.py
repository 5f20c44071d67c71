"""Nodes of shape arithmetic that move or reduce elements, on tensors whose elements are known."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import numpy_helper

from relax_egraph.frontends.building.dim_arithmetic import check_size
from relax_egraph.frontends.building.elements import MOST, Array
from relax_egraph.frontends.onnx.attributes import Attributes
from relax_egraph.frontends.onnx.folds import Fold, Operands, arrays
from relax_egraph.frontends.onnx.tensors import dtype_of
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim


def _gather(operands: Operands, attributes: Attributes) -> Array | None:
    data, indices = operands
    assert data is not None
    assert indices is not None
    places, axis = indices.concrete, attributes.integer("axis")
    if places is None or not -data.array.ndim <= axis < data.array.ndim:
        return None
    extent = data.array.shape[axis]
    if places.size and not (-extent <= places.min() and places.max() < extent):
        return None
    check_size((data.array.size // max(extent, 1), places.size))
    return np.take(data.array, places, axis)


def _concat(operands: Operands, attributes: Attributes) -> Array | None:
    return np.concatenate(arrays(operands), attributes.integer("axis"))


def _axes(operands: Operands, attributes: Attributes, place: int) -> list[int] | None:
    """The axes of a node: an operand, or an attribute in older opsets."""
    if len(operands) > place and (axes := operands[place]) is not None:
        concrete = axes.concrete
        return None if concrete is None else concrete.reshape(-1).tolist()
    return list(attributes.integers("axes")) if attributes.has("axes") else None


def _unsqueeze(operands: Operands, attributes: Attributes) -> Array | None:
    axes = _axes(operands, attributes, 1)
    return None if axes is None else np.expand_dims(arrays(operands)[0], tuple(axes))


def _squeeze(operands: Operands, attributes: Attributes) -> Array | None:
    axes = _axes(operands, attributes, 1)
    if axes is None and len(operands) > 1 and operands[1] is not None:
        return None
    return np.squeeze(arrays(operands)[0], None if axes is None else tuple(axes))


def _reshape(operands: Operands, attributes: Attributes) -> Array | None:
    data, shape = operands
    assert data is not None
    assert shape is not None
    wanted = shape.concrete
    if wanted is None:
        return None
    keeps = not attributes.integer("allowzero")
    extents = [
        data.array.shape[k] if extent == 0 and keeps and k < data.array.ndim else extent
        for k, extent in enumerate(wanted.tolist())
    ]
    return data.array.reshape(extents)


def _slice(operands: Operands, attributes: Attributes) -> Array | None:
    data = arrays(operands[:1])[0]
    if attributes.has("starts"):
        starts, ends = attributes.integers("starts"), attributes.integers("ends")
        axes = attributes.integers("axes") if attributes.has("axes") else range(len(starts))
        steps: Sequence[int] = [1] * len(starts)
    else:
        numbers = [None if o is None else o.concrete for o in operands[1:]]
        if any(n is None and o is not None for n, o in zip(numbers, operands[1:], strict=True)):
            return None
        limits = [None if n is None else n.tolist() for n in (*numbers, None, None)][:4]
        starts, ends = limits[0] or [], limits[1] or []
        axes = range(len(starts)) if limits[2] is None else limits[2]
        steps = [1] * len(starts) if limits[3] is None else limits[3]
    cut = [slice(None)] * data.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        last = data.shape[axis]
        below = step < 0 and end < -last
        cut[axis] = slice(start, None if below else end, step)
    return data[tuple(cut)]


def _expand(operands: Operands, attributes: Attributes) -> Array | None:
    data, shape = operands
    assert data is not None
    assert shape is not None
    wanted = shape.concrete
    if wanted is None:
        return None
    extents = np.broadcast_shapes(data.array.shape, tuple(wanted.tolist()))
    return np.broadcast_to(data.array, extents)


def _constant_of_shape(operands: Operands, attributes: Attributes) -> Array | None:
    (shape,) = operands
    concrete = None if shape is None else shape.concrete
    if concrete is None or not attributes.has("value"):
        return None
    extents, tensor = concrete.reshape(-1).tolist(), attributes.tensor("value")
    if math.prod(extents) > MOST or any(extent < 0 for extent in extents):
        return None
    if np.dtype(dtype_of(tensor.data_type)).kind not in "iub":
        return None
    return np.full(extents, numpy_helper.to_array(tensor).item(), object)


def _tile(operands: Operands, attributes: Attributes) -> Array | None:
    data, repeats = operands
    assert data is not None
    assert repeats is not None
    times = repeats.concrete
    if times is None:
        return None
    check_size((data.array.size, *times.tolist()))
    return np.tile(data.array, tuple(times.tolist()))


def _transpose(operands: Operands, attributes: Attributes) -> Array | None:
    (array,) = arrays(operands)
    return np.transpose(array, attributes.integers("perm") if attributes.has("perm") else None)


def _range(operands: Operands, attributes: Attributes) -> Array | None:
    numbers = [o.concrete for o in operands if o is not None]
    start, limit, delta = (None if n is None else int(n.item()) for n in numbers)
    if start is None or limit is None or not delta or (limit - start) // delta > MOST:
        return None
    return np.array(range(start, limit, delta), object)


def _reduction(combine: Callable[[Dim, Dim], Dim], of_none: int | None) -> Fold:
    def fold(operands: Operands, attributes: Attributes) -> Array | None:
        (array,) = arrays(operands[:1])
        axes = _axes(operands, attributes, 1)
        if axes is None and len(operands) > 1 and operands[1] is not None:
            return None
        if array.size == 0 and of_none is None:
            return None
        if not axes and attributes.schema_default("noop_with_empty_axes"):
            return array
        axis = tuple(range(array.ndim)) if not axes else tuple(a % array.ndim for a in axes)
        kept = bool(attributes.integer("keepdims"))
        function = np.frompyfunc(combine, 2, 1)
        result: Any = array
        for a in sorted(axis, reverse=True):
            if result.shape[a] == 0:
                return None
            result = np.asarray(function.reduce(result, axis=a, keepdims=kept), object)
        return result

    return fold


def _same(operands: Operands, attributes: Attributes) -> Array | None:
    return arrays(operands)[0]


MOVEMENT: Mapping[str, Fold] = {
    "Identity": _same,
    "Gather": _gather,
    "Concat": _concat,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Reshape": _reshape,
    "Expand": _expand,
    "ConstantOfShape": _constant_of_shape,
    "Tile": _tile,
    "Transpose": _transpose,
    "Range": _range,
    "ReduceSum": _reduction(dims.add, 0),
    "ReduceProd": _reduction(dims.mul, 1),
    "ReduceMax": _reduction(dims.maximum, None),
    "ReduceMin": _reduction(dims.minimum, None),
}
"""By ONNX operator; `Shape` and `Size` are not here, their operands are any tensors."""
