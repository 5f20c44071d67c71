"""Elementwise nodes of shape arithmetic, on tensors whose elements are known."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from relax_egraph.frontends.onnx.attributes import Attributes
from relax_egraph.frontends.onnx.elements import Array
from relax_egraph.frontends.onnx.folds import Fold, Operands, Test, arrays, check_size
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim


def _each(function: Callable[..., Any], *arrays: Array) -> Array:
    """`function` applied to the elements of `arrays`, with broadcasting."""
    check_size(np.broadcast_shapes(*(a.shape for a in arrays)))
    broadcast = np.broadcast_arrays(*arrays)
    result = np.empty(broadcast[0].shape, object)
    result.reshape(-1)[:] = [
        function(*each) for each in zip(*(b.reshape(-1).tolist() for b in broadcast), strict=True)
    ]
    return result


def _unary(function: Callable[[Any], Any]) -> Fold:
    """The fold of a function of one element, which returns ``None`` where it is undecided."""
    return _elementwise(function)


def _binary(function: Callable[[Any, Any], Any]) -> Fold:
    """The fold of such a function of two elements."""
    return _elementwise(function)


def _elementwise(function: Callable[..., Any]) -> Fold:

    def fold(operands: Operands, attributes: Attributes) -> Array | None:
        result = _each(function, *arrays(operands))
        return None if any(e is None for e in result.reshape(-1).tolist()) else result

    return fold


def _variadic(function: Callable[[Dim, Dim], Dim]) -> Fold:
    def fold(operands: Operands, attributes: Attributes) -> Array | None:
        first, *others = arrays(operands)
        for other in others:
            first = _each(function, first, other)
        return first

    return fold


def _division(is_nonnegative: Test) -> Fold:
    """The fold of integer division, which ONNX rounds towards 0; undecided for a divisor of 0."""

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
    """The fold of the floor remainder; the truncated remainder may differ."""

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
    (array,) = arrays(operands[:1])
    dtype = np.dtype(attributes.dtype("to")) if attributes.has("to") else None
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


def _chosen(condition: Any, x: Any, y: Any) -> Any:
    return x if condition else y


def _where(operands: Operands, attributes: Attributes) -> Array | None:
    return _each(_chosen, *arrays(operands))


ELEMENTWISE: Mapping[str, Fold] = {
    "Cast": _cast,
    "Add": _binary(dims.add),
    "Sub": _binary(dims.sub),
    "Mul": _binary(dims.mul),
    "Neg": _unary(lambda a: dims.mul(-1, a)),
    "Abs": _unary(lambda a: abs(a) if isinstance(a, int) else None),
    "Max": _variadic(dims.maximum),
    "Min": _variadic(dims.minimum),
    "Sum": _variadic(dims.add),
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
"""By ONNX operator."""

QUOTIENTS: Mapping[str, Callable[[Test], Fold]] = {"Div": _division, "Mod": _modulo}
"""By ONNX operator, of a test whether a dimension is known to be nonnegative."""

CONDITIONS = ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Not", "And", "Or")
"""The operators whose elements are booleans."""
