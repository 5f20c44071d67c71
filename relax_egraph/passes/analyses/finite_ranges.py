"""Finite ranges of the elements of values, by interval arithmetic on operators.

A range states that every element is finite.  A float argument of a caller has no range.  As in
rules, overflow counts as rounding for `ORDINARY` operands and for sums.  Masks, whose values are
close to the largest number, are therefore distinguished from the values that they mask, and a sum
of two masks may be infinite.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from relax_egraph.ir.expr import Call, Constant, Expr, Tuple, TupleGetItem, Var
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import TensorStructInfo

ORDINARY = 1e32
"""The assumed bound of finite numbers that have no other bound."""

_SMALLEST_DIVISOR = 1e-20
_SLACK = 1.00001
_ROUNDED = ("float32", "float64")
"""Dtypes in which products of ordinary numbers do not overflow."""


@dataclass(frozen=True, slots=True)
class Range:
    """A closed interval: every element is a number from `low` to `high`."""

    low: float
    high: float

    @property
    def is_ordinary(self) -> bool:
        """Whether products and powers of such numbers do not overflow."""
        return self.low >= -ORDINARY and self.high <= ORDINARY

    def clipped(self) -> "Range":
        """The range, clipped to ordinary magnitudes."""
        return Range(max(self.low, -ORDINARY), min(self.high, ORDINARY))


ANY = Range(-ORDINARY, ORDINARY)

Known = Range | None


class Ranges:
    """The ranges of variables, which `bind` adds in the order of their bindings."""

    def __init__(self) -> None:
        self._known: dict[Var, Range] = {}

    def bind(self, var: Var, value: Expr) -> None:
        """Record the range of `value` for `var`."""
        if (bounds := self.of(value)) is not None:
            self._known[var] = bounds

    def of(self, value: Expr) -> Known:
        """The range of `value`; of a tuple, of all its fields."""
        if isinstance(value, Var) and value in self._known:
            return self._known[value]
        info = value.struct_info
        if isinstance(info, TensorStructInfo):
            if info.dtype is not None and not _is_float(info.dtype):
                return ANY
            if info.dtype not in _ROUNDED:
                return None
        match value:
            case Constant(data=data):
                return _of_array(data)
            case Tuple(fields=fields):
                return _union([self.of(f) for f in fields])
            case TupleGetItem(tuple_value=inner):
                return self.of(inner)
            case Call(op=Op(name=name)):
                return _representable(self._of_call(name, value), info)
            case _:
                return None

    def _of_call(self, name: str, call: Call) -> Known:
        if name in _FIRST:
            return None if call.attrs.get("mode") == "nan" else self.of(call.args[0])
        if name in ("where", "concat", "stack"):
            return _union([self.of(a) for a in call.args[name == "where" :]])
        ranges = [self.of(a) for a in call.args if isinstance(a.struct_info, TensorStructInfo)]
        known = [g for g in ranges if g is not None]
        if not known or len(known) < len(ranges):
            return None
        if name in ("add", "subtract"):
            x, y = known
            bounds = _sum(x, y if name == "add" else _negative(y))
            return bounds.clipped() if x.is_ordinary and y.is_ordinary else bounds
        if name == "nn.softmax":
            return Range(0.0, 1.0)
        if not all(k.is_ordinary for k in known):
            return None
        if name in _BOUNDED:
            return _BOUNDED[name]
        if name in _FINITE:
            return ANY
        if name in _OF_RANGES:
            return _OF_RANGES[name](*known)
        return self._by_operands(name, call, known)

    def _by_operands(self, name: str, call: Call, known: Sequence[Range]) -> Known:
        """The range of an operator that depends on attributes, or on the operands themselves."""
        x = known[0]
        match name:
            case "multiply":
                square = call.args[0] is call.args[1]
                return Range(0.0, ORDINARY) if square else _product(*known)
            case "power":
                exponent = known[1]
                if exponent.low != exponent.high or exponent.low not in (1.0, 2.0, 3.0, 4.0):
                    return None
                return Range(0.0, ORDINARY) if exponent.low % 2 == 0 else ANY
            case "mean":
                return x if _reduces_something(call) else None
            case "sum":
                return Range(0.0, ORDINARY) if x.low >= 0 else ANY
            case "nn.layer_norm" | "nn.rms_norm" | "nn.group_norm" | "nn.instance_norm":
                return ANY if float(str(call.attrs["epsilon"])) > 0 else None
            case _:
                return None


_FIRST = frozenset(
    (
        *("reshape", "flatten", "broadcast_to", "permute_dims", "expand_dims", "squeeze", "flip"),
        *("strided_slice", "dynamic_strided_slice", "split", "tile", "repeat", "astype"),
        *("take", "check_indices", "gather_elements", "gather_nd"),
    )
)
"""Operators whose result consists of elements of the first operand."""

_FINITE = frozenset(
    (
        *("matmul", "ewise_fma", "einsum", "outer", "square", "nn.rotary_embedding"),
        *("nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.relu", "nn.relu6", "nn.leakyrelu"),
        *("nn.selu", "nn.gelu", "nn.gelu_tanh", "nn.silu", "nn.softplus", "nn.log_softmax"),
    )
)
"""Operators that are finite on ordinary numbers, by the function on ranges."""

_BOUNDED: Mapping[str, Range] = {
    "sigmoid": Range(0.0, 1.0),
    "tanh": Range(-1.0, 1.0),
    "erf": Range(-1.0, 1.0),
    "sin": Range(-1.0, 1.0),
    "cos": Range(-1.0, 1.0),
}


def _reciprocal(x: Range) -> Known:
    if x.low >= _SMALLEST_DIVISOR or x.high <= -_SMALLEST_DIVISOR:
        return Range(1.0 / x.high, 1.0 / x.low)
    return None


def _quotient(x: Range, y: Range) -> Known:
    inverse = _reciprocal(y)
    return None if inverse is None else _product(x, inverse)


def _product(x: Range, y: Range) -> Range:
    corners = [a * b for a in (x.low, x.high) for b in (y.low, y.high)]
    return Range(min(corners), max(corners)).clipped()


def _sum(x: Range, y: Range) -> Range:
    return Range(x.low + y.low, x.high + y.high)


def _negative(x: Range) -> Range:
    return Range(-x.high, -x.low)


def _larger(x: Range, y: Range) -> Range:
    return Range(max(x.low, y.low), max(x.high, y.high))


def _smaller(x: Range, y: Range) -> Range:
    return Range(min(x.low, y.low), min(x.high, y.high))


def _root(x: Range) -> Known:
    return Range(math.sqrt(x.low), math.sqrt(x.high)) if x.low >= 0 else None


def _inverse_root(x: Range) -> Known:
    root = _root(x)
    return None if root is None else _reciprocal(root)


def _absolute(x: Range) -> Range:
    magnitude = max(abs(x.low), abs(x.high))
    return Range(max(x.low, -x.high, 0.0), magnitude)


_OF_RANGES: Mapping[str, Callable[..., Known]] = {
    "abs": _absolute,
    "negative": _negative,
    "maximum": _larger,
    "minimum": _smaller,
    "divide": _quotient,
    "sqrt": _root,
    "rsqrt": _inverse_root,
}


def _of_array(array: npt.NDArray[Any]) -> Known:
    if array.size == 0:
        return Range(0.0, 0.0)
    low, high = float(array.min()), float(array.max())
    return Range(low, high) if math.isfinite(low) and math.isfinite(high) else None


def _union(ranges: Sequence[Known]) -> Known:
    known = [r for r in ranges if r is not None]
    if not known or len(known) < len(ranges):
        return None
    return Range(min(r.low for r in known), max(r.high for r in known))


def _representable(bounds: Known, info: object) -> Known:
    """`bounds`, if the dtype of `info` can represent them."""
    if bounds is None or not isinstance(info, TensorStructInfo) or info.dtype is None:
        return bounds
    most = float(np.finfo(info.dtype).max) * _SLACK
    return bounds if -most <= bounds.low and bounds.high <= most else None


def _is_float(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat"))


def _reduces_something(call: Call) -> bool:
    """Whether the reduced axes are proven to be non-empty."""
    info, axis = call.args[0].struct_info, call.attrs.get("axis")
    axes = (axis,) if isinstance(axis, int) else cast("tuple[int, ...] | None", axis)
    shape = info.dims if isinstance(info, TensorStructInfo) else None
    if shape is None:
        return False
    reduced = shape if axes is None else [shape[a] for a in axes]
    return all(isinstance(extent, int) and extent > 0 for extent in reduced)
