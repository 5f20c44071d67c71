"""What the nodes of shape arithmetic do with tensors of which each element is known."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from onnx import numpy_helper

from relax_egraph.errors import IllTyped
from relax_egraph.frontends.onnx.attributes import Attributes
from relax_egraph.frontends.onnx.elements import MOST, Array, Elements
from relax_egraph.frontends.onnx.tensors import dtype_of
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim

Operands: TypeAlias = Sequence[Elements | None]
Fold: TypeAlias = Callable[[Operands, Attributes], Array | None]
"""The result's elements, or ``None`` where they are not decided."""

Test: TypeAlias = Callable[[Dim], bool]


def folded(
    op: str, operands: Operands, attributes: Attributes, is_nonnegative: Test
) -> Elements | None:
    """The elements that a node gives for operands of known elements, if these are known too.

    An operand that is left out is ``None``.  Operands and attributes may not fit together at all.
    `is_nonnegative` says of which dimensions it is known where the node stands.
    """
    fold = _QUOTIENTS[op](is_nonnegative) if op in _QUOTIENTS else _FOLDS.get(op)
    if fold is None:
        return None
    try:
        result = fold(operands, attributes)
    except (ValueError, IndexError, TypeError, OverflowError, IllTyped):
        return None  # what does not fit together: its converter says so
    if result is None:
        return None
    array, dtype = np.asarray(result, object), _dtype(op, operands, attributes)
    return Elements(array, dtype) if array.size <= MOST and _holds(dtype, array) else None


def _holds(dtype: str, array: Array) -> bool:
    """Whether no number of `array` wraps in `dtype`."""
    if dtype == "bool":
        return True
    limits = np.iinfo(dtype)
    numbers = [e for e in array.reshape(-1).tolist() if isinstance(e, int)]
    return all(int(limits.min) <= number <= int(limits.max) for number in numbers)


def _dtype(op: str, operands: Operands, attributes: Attributes) -> str:
    if op == "Cast":
        return attributes.dtype("to")
    if op in _CONDITIONS:
        return "bool"
    if op == "ConstantOfShape":
        return dtype_of(attributes.tensor("value").data_type)
    typed = operands[1] if op in ("CastLike", "Where") else operands[0]
    assert typed is not None
    return typed.dtype


def _check_size(shape: Sequence[int]) -> None:
    """Raise ``ValueError`` for a tensor that would not be looked into: it is not made first."""
    if math.prod(shape) > MOST:
        raise ValueError(f"more than {MOST} elements")


def _arrays(operands: Operands) -> list[Array]:
    return [o.array for o in operands if o is not None]


def _each(function: Callable[..., Any], *arrays: Array) -> Array:
    """`function` of the elements of `arrays`, which are broadcast."""
    _check_size(np.broadcast_shapes(*(a.shape for a in arrays)))
    broadcast = np.broadcast_arrays(*arrays)
    result = np.empty(broadcast[0].shape, object)
    result.reshape(-1)[:] = [
        function(*each) for each in zip(*(b.reshape(-1).tolist() for b in broadcast), strict=True)
    ]
    return result


def _unary(function: Callable[[Any], Any]) -> Fold:
    """Of a function of one element that gives ``None`` where it is not decided."""
    return _elementwise(function)


def _binary(function: Callable[[Any, Any], Any]) -> Fold:
    """Of such a function of two elements."""
    return _elementwise(function)


def _elementwise(function: Callable[..., Any]) -> Fold:

    def fold(operands: Operands, attributes: Attributes) -> Array | None:
        result = _each(function, *_arrays(operands))
        return None if any(e is None for e in result.reshape(-1).tolist()) else result

    return fold


def _variadic(function: Callable[[Dim, Dim], Dim]) -> Fold:
    def fold(operands: Operands, attributes: Attributes) -> Array | None:
        first, *others = _arrays(operands)
        for other in others:
            first = _each(function, first, other)
        return first

    return fold


def _division(is_nonnegative: Test) -> Fold:
    """The quotient rounded towards 0, as ONNX divides integers; by 0 it does not."""

    def quotient(a: Dim, b: Dim) -> Dim | None:
        if b != 0 and dims.mod(a, b) == 0:
            return dims.floordiv(a, b)
        if b == 0 or not dims.prove_ge(b, 1):
            return None
        if isinstance(a, int):
            return dims.floordiv(a, b) if a >= 0 else dims.mul(-1, dims.floordiv(-a, b))
        return dims.floordiv(a, b) if is_nonnegative(a) else None

    return _binary(quotient)


def _modulo(is_nonnegative: Test) -> Fold:
    """The rest of the quotient rounded down; that of the one rounded towards 0 may be another."""

    def fold(operands: Operands, attributes: Attributes) -> Array | None:
        truncated = bool(attributes.schema_default("fmod"))

        def rest(a: Dim, b: Dim) -> Dim | None:
            if b != 0 and dims.mod(a, b) == 0:
                return 0
            if not dims.prove_ge(b, 1) or (truncated and not is_nonnegative(a)):
                return None
            return dims.mod(a, b)

        return _binary(rest)(operands, attributes)

    return fold


def _equal(a: Dim, b: Dim) -> bool | None:
    if dims.equal(a, b):
        return True
    return False if dims.distinct(a, b) else None


def _less(a: Dim, b: Dim) -> bool | None:
    if dims.prove_ge(b, dims.add(a, 1)):
        return True
    return False if dims.prove_ge(a, b) else None


def _less_or_equal(a: Dim, b: Dim) -> bool | None:
    greater = _less(b, a)
    return None if greater is None else not greater


def _as_integer(element: Any) -> Any:
    return int(element) if isinstance(element, bool) else element


def _cast(operands: Operands, attributes: Attributes) -> Array | None:
    (array,) = _arrays(operands[:1])
    dtype = np.dtype(attributes.dtype("to")) if attributes.given("to") else None
    if dtype is not None and dtype.kind == "b":
        decided = [_equal(int(e) if isinstance(e, bool) else e, 0) for e in array.reshape(-1)]
        if any(d is None for d in decided):
            return None
        return np.array([not d for d in decided], object).reshape(array.shape)
    if dtype is None or dtype.kind not in "iu":
        return None
    result = _each(_as_integer, array)
    limits = np.iinfo(dtype)
    flat = result.reshape(-1).tolist()
    fits = all(limits.min <= e <= limits.max for e in flat if isinstance(e, int))
    return result if fits else None


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
    _check_size((data.array.size // max(extent, 1), places.size))
    return np.take(data.array, places, axis)


def _concat(operands: Operands, attributes: Attributes) -> Array | None:
    return np.concatenate(_arrays(operands), attributes.integer("axis"))


def _axes(operands: Operands, attributes: Attributes, place: int) -> list[int] | None:
    """The axes of a node that takes them as an operand, or as an attribute in older opsets."""
    if len(operands) > place and (axes := operands[place]) is not None:
        concrete = axes.concrete
        return None if concrete is None else concrete.reshape(-1).tolist()
    return list(attributes.integers("axes")) if attributes.given("axes") else None


def _unsqueeze(operands: Operands, attributes: Attributes) -> Array | None:
    axes = _axes(operands, attributes, 1)
    return None if axes is None else np.expand_dims(_arrays(operands)[0], tuple(axes))


def _squeeze(operands: Operands, attributes: Attributes) -> Array | None:
    axes = _axes(operands, attributes, 1)
    if axes is None and len(operands) > 1 and operands[1] is not None:
        return None
    return np.squeeze(_arrays(operands)[0], None if axes is None else tuple(axes))


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
    data = _arrays(operands[:1])[0]
    if attributes.given("starts"):
        starts, ends = attributes.integers("starts"), attributes.integers("ends")
        axes = attributes.integers("axes") if attributes.given("axes") else range(len(starts))
        steps: Sequence[int] = [1] * len(starts)
    else:
        numbers = [None if o is None else o.concrete for o in operands[1:]]
        if any(n is None and o is not None for n, o in zip(numbers, operands[1:], strict=True)):
            return None
        given = [None if n is None else n.tolist() for n in (*numbers, None, None)][:4]
        starts, ends = given[0] or [], given[1] or []
        axes = range(len(starts)) if given[2] is None else given[2]
        steps = [1] * len(starts) if given[3] is None else given[3]
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
    if concrete is None or not attributes.given("value"):
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
    _check_size((data.array.size, *times.tolist()))
    return np.tile(data.array, tuple(times.tolist()))


def _transpose(operands: Operands, attributes: Attributes) -> Array | None:
    (array,) = _arrays(operands)
    return np.transpose(array, attributes.integers("perm") if attributes.given("perm") else None)


def _range(operands: Operands, attributes: Attributes) -> Array | None:
    numbers = [o.concrete for o in operands if o is not None]
    start, limit, delta = (None if n is None else int(n.item()) for n in numbers)
    if start is None or limit is None or not delta or (limit - start) // delta > MOST:
        return None
    return np.array(range(start, limit, delta), object)


def _reduction(combine: Callable[[Dim, Dim], Dim], of_none: int | None) -> Fold:
    def fold(operands: Operands, attributes: Attributes) -> Array | None:
        (array,) = _arrays(operands[:1])
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


def _chosen(condition: Any, x: Any, y: Any) -> Any:
    return x if condition else y


def _where(operands: Operands, attributes: Attributes) -> Array | None:
    return _each(_chosen, *_arrays(operands))


def _same(operands: Operands, attributes: Attributes) -> Array | None:
    return _arrays(operands)[0]


_FOLDS: Mapping[str, Fold] = {
    "Identity": _same,
    "Cast": _cast,
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
    "Add": _binary(dims.add),
    "Sub": _binary(dims.sub),
    "Mul": _binary(dims.mul),
    "Neg": _unary(lambda a: dims.mul(-1, a)),
    "Abs": _unary(lambda a: abs(a) if isinstance(a, int) else None),
    "Max": _variadic(dims.maximum),
    "Min": _variadic(dims.minimum),
    "Sum": _variadic(dims.add),
    "ReduceSum": _reduction(dims.add, 0),
    "ReduceProd": _reduction(dims.mul, 1),
    "ReduceMax": _reduction(dims.maximum, None),
    "ReduceMin": _reduction(dims.minimum, None),
    "Equal": _binary(_equal),
    "Less": _binary(_less),
    "LessOrEqual": _binary(_less_or_equal),
    "Greater": _binary(lambda a, b: _less(b, a)),
    "GreaterOrEqual": _binary(lambda a, b: _less_or_equal(b, a)),
    "Not": _unary(lambda a: not a),
    "And": _binary(lambda a, b: a and b),
    "Or": _binary(lambda a, b: a or b),
    "Where": _where,
}
"""By ONNX operator; `Shape` and `Size` are not here, their operands are any tensors."""

_QUOTIENTS: Mapping[str, Callable[[Test], Fold]] = {"Div": _division, "Mod": _modulo}
"""What depends on which numbers are known not to be negative."""

_CONDITIONS = ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Not", "And", "Or")
