"""Checks of values against struct info at run time, which bind dimension symbols."""

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np

from relax_egraph.errors import RunError
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import TABLE, name_of
from relax_egraph.ir.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    symbols_of,
    tensor,
)

Value: TypeAlias = Any
"""A tensor is a numpy array, a shape a tuple of ints, a tuple a tuple of values; a function is
callable; a host scalar is an int, float or bool."""

Symbols: TypeAlias = dict[str, int]
"""The values of the dimension symbols of one call of a function."""


def as_value(value: Value) -> Value:
    """`value`, with a scalar of numpy as a tensor of rank 0."""
    return np.asarray(value) if isinstance(value, np.generic) else value


def as_result(value: Value) -> Value:
    """The value that a packed function returned; a list stands for a tuple."""
    return tuple(map(as_result, value)) if isinstance(value, list | tuple) else as_value(value)


def check(claims: Iterable[tuple[str, StructInfo, Value]], symbols: Symbols) -> None:
    """Raise `RunError` unless each value, under its name, fulfils its struct info.

    A symbol that is alone a dimension, and has no value yet, gets the value of that extent; all
    are bound before any dimension is compared, so that the order of claims does not matter.
    """
    listed = list(claims)
    for name, info, value in listed:
        if not _fits_kind(info, value):
            raise RunError(_mismatch(name, info, value, symbols))
    for _, info, value in listed:
        for dim, extent in _extents(info, value):
            if not isinstance(dim, int) and dim.is_Symbol:
                symbols.setdefault(str(dim), extent)
    for name, info, value in listed:
        for dim, extent in _extents(info, value):
            if unbound := sorted(dims.symbols(dim) - symbols.keys()):
                raise RunError(
                    f"{name} is {describe(value)}, needs {info}, "
                    f"but nothing says what {', '.join(unbound)} is"
                )
            if dims.evaluate(dim, symbols) != extent:
                raise RunError(_mismatch(name, info, value, symbols))


def describe(value: Value) -> str:
    """The struct info of `value`, as a script writes it."""
    match value:
        case np.ndarray():
            return str(info_of(value))
        case bool() | int() | float() | str():
            return repr(value)
        case tuple() if all(isinstance(v, int) for v in value):
            return f"R.shape({list(value)})"
        case tuple():
            return f"R.Tuple({', '.join(map(describe, value))})"
        case _:
            return f"an object of {type(value).__name__}"


def info_of(value: Value) -> StructInfo:
    """The most specific struct info of `value`."""
    match value:
        case np.ndarray():
            return tensor(value.shape, name_of(value.dtype))
        case bool():
            return PrimStructInfo("bool")
        case int():
            return PrimStructInfo("int64", value)
        case float():
            return PrimStructInfo("float64", None, value)
        case tuple() if all(isinstance(v, int) for v in value):
            return ShapeStructInfo(value, len(value))
        case tuple():
            return TupleStructInfo(tuple(map(info_of, value)))
        case _:
            return ObjectStructInfo()


def _fits_kind(info: StructInfo, value: Value) -> bool:
    match info:
        case TensorStructInfo(dtype=dtype, ndim=ndim):
            if not isinstance(value, np.ndarray):
                return False
            return dtype in (None, name_of(value.dtype)) and ndim in (-1, value.ndim)
        case ShapeStructInfo(ndim=ndim):
            is_shape = isinstance(value, tuple) and all(isinstance(v, int) for v in value)
            return is_shape and ndim in (-1, len(value))
        case TupleStructInfo(fields=fields):
            return (
                isinstance(value, tuple)
                and len(value) == len(fields)
                and all(map(_fits_kind, fields, value))
            )
        case PrimStructInfo(dtype=dtype):
            kinds = {"bool": bool, "float": float}.get(TABLE[dtype].kind, int)
            return isinstance(value, kinds)
        case FuncStructInfo():
            return callable(value)
        case ObjectStructInfo():
            return True


def _extents(info: StructInfo, value: Value) -> Iterator[tuple[Dim, int]]:
    """Each claimed dimension with the extent of the value, whose kind fits."""
    match info:
        case TensorStructInfo():
            yield from zip(info.dims or (), value.shape, strict=False)
        case ShapeStructInfo(values=values):
            yield from zip(values or (), value, strict=False)
        case PrimStructInfo(value=dim):
            if dim is not None:
                yield dim, value
        case TupleStructInfo(fields=fields):
            for field, v in zip(fields, value, strict=True):
                yield from _extents(field, v)
        case FuncStructInfo() | ObjectStructInfo():
            return


def _mismatch(name: str, info: StructInfo, value: Value, symbols: Symbols) -> str:
    known = [f"{s} = {symbols[s]}" for s in sorted(symbols_of(info)) if s in symbols]
    under = f" with {', '.join(known)}" if known else ""
    return f"{name} is {describe(value)}, needs {info}{under}"
