"""Elementwise nodes of shape arithmetic, on tensors whose elements are known."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from relax_egraph.frontends.building.dim_arithmetic import (
    Test,
    decided,
    each,
    equal,
    less,
    less_or_equal,
    quotient,
    remainder,
)
from relax_egraph.frontends.building.elements import Array
from relax_egraph.frontends.onnx.attributes import Attributes
from relax_egraph.frontends.onnx.folds import Fold, Operands, arrays
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim


def _unary(function: Callable[[Any], Any]) -> Fold:
    """The fold of a function of one element, which returns ``None`` where it is undecided."""
    return _elementwise(function)


def _binary(function: Callable[[Any, Any], Any]) -> Fold:
    """The fold of such a function of two elements."""
    return _elementwise(function)


def _elementwise(function: Callable[..., Any]) -> Fold:
    def fold(operands: Operands, attributes: Attributes) -> Array | None:
        return decided(function, *arrays(operands))

    return fold


def _variadic(function: Callable[[Dim, Dim], Dim]) -> Fold:
    def fold(operands: Operands, attributes: Attributes) -> Array | None:
        first, *others = arrays(operands)
        for other in others:
            first = each(function, first, other)
        return first

    return fold


def _division(is_nonnegative: Test) -> Fold:
    """The fold of integer division, which ONNX rounds towards 0; undecided for a divisor of 0."""
    return _binary(lambda a, b: quotient(a, b, is_nonnegative))


def _modulo(is_nonnegative: Test) -> Fold:
    """The fold of the floor remainder; the truncated remainder may differ."""

    def fold(operands: Operands, attributes: Attributes) -> Array | None:
        truncated = bool(attributes.schema_default("fmod"))

        def is_same(dim: Dim) -> bool:
            return not truncated or is_nonnegative(dim)

        def rest(a: Dim, b: Dim) -> Dim | None:
            return remainder(a, b, is_same)

        return decided(rest, *arrays(operands))

    return fold


def _as_integer(element: Any) -> Any:
    return int(element) if isinstance(element, bool) else element


def _cast(operands: Operands, attributes: Attributes) -> Array | None:
    (array,) = arrays(operands[:1])
    dtype = np.dtype(attributes.dtype("to")) if attributes.has("to") else None
    if dtype is not None and dtype.kind == "b":
        decided = [equal(int(e) if isinstance(e, bool) else e, 0) for e in array.reshape(-1)]
        if any(d is None for d in decided):
            return None
        return np.array([not d for d in decided], object).reshape(array.shape)
    if dtype is None or dtype.kind not in "iu":
        return None
    result = each(_as_integer, array)
    limits = np.iinfo(dtype)
    flat = result.reshape(-1).tolist()
    fits = all(limits.min <= e <= limits.max for e in flat if isinstance(e, int))
    return result if fits else None


def _chosen(condition: Any, x: Any, y: Any) -> Any:
    return x if condition else y


def _where(operands: Operands, attributes: Attributes) -> Array | None:
    return each(_chosen, *arrays(operands))


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
    "Equal": _binary(equal),
    "Less": _binary(less),
    "LessOrEqual": _binary(less_or_equal),
    "Greater": _binary(lambda a, b: less(b, a)),
    "GreaterOrEqual": _binary(lambda a, b: less_or_equal(b, a)),
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
