"""Small integer tensors whose elements are symbolic dimensions, and operators on them.

Operators that only move elements are computed by their reference, on positions of elements.  The
arithmetic of dimensions does not overflow, and a program that computes shapes does not either.
"""

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from relax_egraph.errors import RunError
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Attr
from relax_egraph.ir.op import Op, complete_attrs
from relax_egraph.ir.reference import REFERENCE
from relax_egraph.ir.reference.array import Array, Reference
from relax_egraph.ir.struct_info import Shape, StructInfo, TensorStructInfo

Known: TypeAlias = Array | tuple[Any, ...]
"""A symbolic value: the elements of a tensor, the dimensions of a shape, or a tuple of values."""

MOST = 64
"""The most elements of a tensor."""

DTYPES = frozenset({"int32", "int64", "bool"})
"""The dtypes of these tensors; elements of ``bool`` are decided."""


class _Unknown(Exception):
    """An element cannot be expressed as a dimension."""


def elements(data: Array) -> Array | None:
    """The elements of a constant, if they are few integers."""
    if data.size > MOST or data.dtype.name not in DTYPES:
        return None
    return np.asarray(data.astype(object))


def apply(op: Op, operands: list[Known], attrs: Mapping[str, Attr]) -> Known | None:
    """The result of `op` on `operands`; ``None`` if it is unknown."""
    if op.name not in _MEANING:
        return None
    try:
        result = _MEANING[op.name](*operands, **complete_attrs(op, attrs))
    except (_Unknown, RunError, ValueError):
        return None  # the operator fails at run time
    return tuple(map(_array, result)) if isinstance(result, tuple) else _array(result)


def fits(known: Known, info: StructInfo) -> bool:
    """Whether the dtype of `info` can represent all numbers among the elements `known`."""
    if not isinstance(info, TensorStructInfo) or info.dtype in (None, "bool"):
        return True
    limits = np.iinfo(info.dtype)
    numbers = (e for e in np.asarray(known, object).flat if isinstance(e, int))
    return all(limits.min <= e <= limits.max for e in numbers)


def is_small(info: StructInfo) -> bool:
    """Whether a value of `info` has few elements; a tuple holds parts of small tensors."""
    if not isinstance(info, TensorStructInfo):
        return True
    count = None if info.dims is None else dims.product(info.dims)
    return info.dtype in DTYPES and isinstance(count, int) and count <= MOST


def _array(result: object) -> Array:
    return np.asarray(result, object)


def _moved(reference: Reference) -> Callable[..., Known]:
    """`reference` on symbolic elements: it only moves elements of its first operand."""

    def move(data: Known, *others: Known, **attrs: Attr) -> Known:
        pool: list[Dim] = [0]  # position 0: the padding

        def numbered(part: Known) -> Known:
            if isinstance(part, tuple):
                return tuple(map(numbered, part))
            pool.extend(part.flat)
            return np.arange(len(pool) - part.size, len(pool)).reshape(part.shape)

        moved = reference(numbered(data), *map(_numbers, others), **attrs)
        values = np.array(pool, object)
        return tuple(values[m] for m in moved) if isinstance(moved, tuple) else values[moved]

    return move


def _numbers(known: Known) -> Known:
    """`known` as numbers; it must have no symbol."""
    values = known if isinstance(known, tuple) else known.flat
    if not all(isinstance(v, int) for v in values):
        raise _Unknown
    return known if isinstance(known, tuple) else known.astype(np.int64)


def _each(f: Callable[..., Dim | bool], count: int) -> Callable[..., Array]:
    """`f` applied to the elements of its operands, with broadcasting."""
    return np.frompyfunc(f, count, 1)


def _divided(f: Callable[[Dim, Dim], Dim]) -> Callable[[Dim, Dim], Dim]:
    """`f`, for divisors that are proven to be nonzero."""

    def divide(a: Dim, b: Dim) -> Dim:
        if b == 0 or not (isinstance(b, int) or dims.prove_ge(b, 1)):
            raise _Unknown
        return f(a, b)

    return divide


def _equal(a: Dim, b: Dim) -> bool:
    if dims.equal(a, b):
        return True
    if dims.distinct(a, b):
        return False
    raise _Unknown


def _greater_equal(a: Dim, b: Dim) -> bool:
    if dims.prove_ge(a, b):
        return True
    if dims.prove_ge(dims.sub(b, 1), a):
        return False
    raise _Unknown


def _flipped(f: Callable[[Dim, Dim], bool]) -> Callable[[Dim, Dim], bool]:
    """`f` with its operands swapped."""
    return lambda a, b: f(b, a)


def _not(f: Callable[[Dim, Dim], bool]) -> Callable[[Dim, Dim], bool]:
    return lambda a, b: not f(a, b)


def _negative(a: Dim) -> Dim:
    return dims.mul(-1, a)


def _shape_to_tensor(shape: Shape) -> Array:
    return np.array(shape, object)


def _where(condition: Array, x: Array, y: Array) -> Array:
    return np.where(condition.astype(bool), x, y)


def _astype(x: Array, *, dtype: str) -> Array:
    if dtype not in DTYPES:
        raise _Unknown
    return _each(_is_true, 1)(x) if dtype == "bool" else x


def _is_true(a: Dim) -> bool:
    return not _equal(a, 0)


def _filled(shape: tuple[int, ...], value: Dim) -> Array:
    return np.full(shape, value, object)


def _full(shape: tuple[int, ...], fill_value: Array, *, dtype: str | None) -> Array:
    return _filled(shape, _astype(fill_value, dtype=dtype or "int64").item())


def _filled_with(value: int) -> Callable[..., Array]:
    def fill(shape: tuple[int, ...], *, dtype: str) -> Array:
        return _astype(_filled(shape, value), dtype=dtype)

    return fill


def _folded(f: Callable[[Dim, Dim], Dim], first: int) -> Callable[..., Array]:
    """The reduction of axes by `f`, from `first` on."""

    def folded(x: Array, *, axis: tuple[int, ...] | None, keepdims: bool) -> Array:
        axes = tuple(range(x.ndim)) if axis is None else tuple(a % x.ndim for a in axis)
        kept = [k for k in range(x.ndim) if k not in axes]
        rows = np.transpose(x, [*kept, *axes]).reshape(*(x.shape[k] for k in kept), -1)
        result = np.empty(rows.shape[:-1], object)
        for place in np.ndindex(result.shape):
            result[place] = reduce(f, rows[place], first)
        shape = [1 if k in axes else d for k, d in enumerate(x.shape)]
        return result.reshape(shape) if keepdims else result

    return folded


_MOVES = (
    *("reshape", "flatten", "expand_dims", "squeeze", "permute_dims", "broadcast_to"),
    *("concat", "stack", "split", "flip", "tile", "repeat"),
    *("take", "gather_elements", "gather_nd", "strided_slice", "dynamic_strided_slice"),
)

_MEANING: Mapping[str, Callable[..., Any]] = {
    **{name: _moved(REFERENCE[name]) for name in _MOVES},
    "shape_to_tensor": _shape_to_tensor,
    "add": _each(dims.add, 2),
    "subtract": _each(dims.sub, 2),
    "multiply": _each(dims.mul, 2),
    "floor_divide": _each(_divided(dims.floordiv), 2),
    "floor_mod": _each(_divided(dims.mod), 2),
    "maximum": _each(dims.maximum, 2),
    "minimum": _each(dims.minimum, 2),
    "negative": _each(_negative, 1),
    "equal": _each(_equal, 2),
    "not_equal": _each(_not(_equal), 2),
    "greater_equal": _each(_greater_equal, 2),
    "less": _each(_not(_greater_equal), 2),
    "less_equal": _each(_flipped(_greater_equal), 2),
    "greater": _each(_not(_flipped(_greater_equal)), 2),
    "where": _where,
    "astype": _astype,
    "full": _full,
    "zeros": _filled_with(0),
    "ones": _filled_with(1),
    "prod": _folded(dims.mul, 1),
    "sum": _folded(dims.add, 0),
}
