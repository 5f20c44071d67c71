"""Arithmetic on sizes, done at import: operations on small tensors whose elements are known."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from relax_egraph.errors import IllTyped, ModelError
from relax_egraph.frontends.building import dim_arithmetic as arithmetic
from relax_egraph.frontends.building.elements import MOST, Array, Elements
from relax_egraph.frontends.stablehlo import tensors
from relax_egraph.frontends.stablehlo.program import Program
from relax_egraph.frontends.stablehlo.values import Scope, Value
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim


@dataclass(frozen=True, slots=True)
class Facts:
    """The operation, and what is known of sizes there."""

    operation: ir.Operation
    program: Program
    scope: Scope

    def integers(self, name: str) -> list[int]:
        """The attribute `name`, some integers."""
        return list(map(int, self.operation.attributes[name]))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result; raises ``ValueError`` if it is not static."""
        shape = tensors.shape_of(self.operation.results[0].type)
        known = tuple(n for n in shape if n is not None)
        if len(known) < len(shape):
            raise ValueError("not static")
        arithmetic.check_size(known)
        return known

    def is_nonnegative(self, dim: Dim) -> bool:
        """Whether `dim` is known to be 0 or more."""
        return self.program.at_least(dim, 0) or self.scope.bb.is_nonnegative(dim)

    def less(self, a: Dim, b: Dim) -> bool | None:
        """Whether `a` is less than `b`, if that is decided."""
        if self.program.at_least(b, dims.add(a, 1)):
            return True
        return False if self.program.at_least(a, b) else None


Fold: TypeAlias = Callable[[Facts, list[Array]], Array | None]
"""The elements of the result, or ``None`` where they are not known."""


def folded(
    operation: ir.Operation,
    operands: Sequence[Elements | None],
    program: Program,
    scope: Scope,
) -> Elements | None:
    """The elements of the result of `operation`, or ``None`` if they are not known now."""
    fold = _FOLDS.get(operation.name)
    if fold is None or len(operation.results) != 1:
        return None
    known = [o for o in operands if o is not None]
    if len(known) < len(operands) or not known:
        return None
    try:
        dtype = tensors.dtype_of(operation.results[0].type)
        array = fold(Facts(operation, program, scope), [k.array for k in known])
    except (ModelError, IllTyped, ValueError, IndexError, TypeError, OverflowError):
        return None
    if array is None or array.size > MOST or not _holds(dtype, array):
        return None
    return Elements(np.asarray(array, object), dtype)


def selected(operation: ir.Operation, operands: Sequence[Value]) -> Value | None:
    """The operand that is the result of `operation` whatever the others are, if there is one."""
    match operation.name:
        case "stablehlo.and":
            return next((o for o in operands if _is_everywhere(o, False)), None)
        case "stablehlo.or":
            return next((o for o in operands if _is_everywhere(o, True)), None)
        case "stablehlo.select":
            condition, x, y = operands
            if _is_everywhere(condition, True):
                return x
            return y if _is_everywhere(condition, False) else None
        case _:
            return None


def _is_everywhere(value: Value, truth: bool) -> bool:
    return value.elements is not None and all(e is truth for e in value.elements.dims)


def _holds(dtype: str, array: Array) -> bool:
    """Whether `dtype` can represent every number of `array`."""
    kind = np.dtype(dtype).kind
    if kind not in "iu":
        return kind == "b"
    limits = np.iinfo(dtype)
    numbers = [e for e in array.reshape(-1).tolist() if isinstance(e, int)]
    return all(int(limits.min) <= number <= int(limits.max) for number in numbers)


def _elementwise(function: Callable[..., Any]) -> Fold:
    """The fold of a function that is ``None`` where it is undecided."""

    def fold(facts: Facts, operands: list[Array]) -> Array | None:
        return arithmetic.decided(function, *operands)

    return fold


def _divide(facts: Facts, operands: list[Array]) -> Array | None:
    def quotient(a: Dim, b: Dim) -> Dim | None:
        return arithmetic.quotient(a, b, facts.is_nonnegative)

    return arithmetic.decided(quotient, *operands)


def _remainder(facts: Facts, operands: list[Array]) -> Array | None:
    def remainder(a: Dim, b: Dim) -> Dim | None:
        return arithmetic.remainder(a, b, facts.is_nonnegative)

    return arithmetic.decided(remainder, *operands)


def _sign(facts: Facts, operands: list[Array]) -> Array | None:
    def sign(a: Dim) -> Dim | None:
        if isinstance(a, int):
            return (a > 0) - (a < 0)
        if facts.less(0, a):
            return 1
        return dims.minimum(a, 1) if facts.is_nonnegative(a) else None

    return arithmetic.decided(sign, *operands)


def _compare(facts: Facts, operands: list[Array]) -> Array | None:
    direction = stablehlo.ComparisonDirectionAttr(
        facts.operation.attributes["comparison_direction"]
    ).value

    def compare(a: Any, b: Any) -> bool | None:
        a, b = int(a) if a is True or a is False else a, int(b) if b is True or b is False else b
        match direction:
            case "EQ":
                return arithmetic.equal(a, b)
            case "NE":
                return _not(arithmetic.equal(a, b))
            case "LT":
                return facts.less(a, b)
            case "GT":
                return facts.less(b, a)
            case "GE":
                return _not(facts.less(a, b))
            case _:
                return _not(facts.less(b, a))

    return arithmetic.decided(compare, *operands)


def _not(decision: bool | None) -> bool | None:
    return None if decision is None else not decision


def _convert(facts: Facts, operands: list[Array]) -> Array | None:
    to_bool = tensors.dtype_of(facts.operation.results[0].type) == "bool"

    def convert(a: Any) -> Any:
        if to_bool:
            return _not(arithmetic.equal(int(a) if isinstance(a, bool) else a, 0))
        return int(a) if isinstance(a, bool) else a

    return arithmetic.decided(convert, *operands)


def _select(facts: Facts, operands: list[Array]) -> Array | None:
    return arithmetic.each(lambda c, x, y: x if c else y, *operands)


def _clamp(facts: Facts, operands: list[Array]) -> Array | None:
    def clamp(low: Dim, x: Dim, high: Dim) -> Dim:
        return dims.minimum(dims.maximum(x, low), high)

    return arithmetic.each(clamp, *operands)


def _reshape(facts: Facts, operands: list[Array]) -> Array | None:
    return operands[0].reshape(facts.shape)


def _broadcast(facts: Facts, operands: list[Array]) -> Array | None:
    (operand,), shape = operands, facts.shape
    axes = facts.integers("broadcast_dimensions")
    spread = [1] * len(shape)
    for axis, extent in zip(axes, operand.shape, strict=True):
        spread[axis] = extent
    return np.broadcast_to(operand.reshape(spread), shape)


def _concatenate(facts: Facts, operands: list[Array]) -> Array | None:
    return np.concatenate(operands, int(facts.operation.attributes["dimension"].value))


def _slice(facts: Facts, operands: list[Array]) -> Array | None:
    limits = zip(*map(facts.integers, ("start_indices", "limit_indices", "strides")), strict=True)
    return operands[0][tuple(slice(*each) for each in limits)]


def _transpose(facts: Facts, operands: list[Array]) -> Array | None:
    return operands[0].transpose(facts.integers("permutation"))


_FOLDS: Mapping[str, Fold] = {
    "stablehlo.add": _elementwise(dims.add),
    "stablehlo.subtract": _elementwise(dims.sub),
    "stablehlo.multiply": _elementwise(dims.mul),
    "stablehlo.divide": _divide,
    "stablehlo.remainder": _remainder,
    "stablehlo.maximum": _elementwise(dims.maximum),
    "stablehlo.minimum": _elementwise(dims.minimum),
    "stablehlo.negate": _elementwise(lambda a: dims.mul(-1, a)),
    "stablehlo.abs": _elementwise(lambda a: abs(a) if isinstance(a, int) else None),
    "stablehlo.sign": _sign,
    "stablehlo.compare": _compare,
    "stablehlo.and": _elementwise(lambda a, b: a and b if isinstance(a, bool) else None),
    "stablehlo.or": _elementwise(lambda a, b: a or b if isinstance(a, bool) else None),
    "stablehlo.not": _elementwise(lambda a: not a if isinstance(a, bool) else None),
    "stablehlo.convert": _convert,
    "stablehlo.select": _select,
    "stablehlo.clamp": _clamp,
    "stablehlo.reshape": _reshape,
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.slice": _slice,
    "stablehlo.transpose": _transpose,
}
"""By operation."""
