"""Conversion of a caller's arguments, by position or name, to those that a function takes."""

import sys
from collections.abc import Mapping, Sequence
from operator import is_
from typing import Any, cast

import numpy as np

from relax_egraph.errors import RunError
from relax_egraph.ir.dtypes import usual
from relax_egraph.vm.dlpack import from_dlpack
from relax_egraph.vm.executable import VMFunction


def arrange(function: VMFunction, args: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
    """The arguments in the order of the parameters, converted for the machine.

    Raises `RunError` unless every parameter gets exactly one argument.
    """
    ordered = in_order(function, args, named)
    try:
        return [
            value
            if _is_plain(value)
            else convert(f"{function.name}: parameter {name}", _of_host(info, value))
            for name, info, value in zip(function.params, function.param_info, ordered, strict=True)
        ]
    except RecursionError:
        raise RunError(f"{function.name}: an argument is nested too deeply") from None


def in_order(function: VMFunction, args: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any]:
    """The arguments in the order of the parameters; see `arrange`."""
    params = function.params
    if not named and len(args) == len(params):
        return args
    if len(args) > len(params) or (not named and len(args) < len(params)):
        noun = "argument" if len(params) == 1 else "arguments"
        raise RunError(f"{_signature(function)} takes {len(params)} {noun}, got {len(args)}")
    rest = params[len(args) :]
    if len(rest) != len(named) or not all(map(named.__contains__, rest)):
        raise RunError(f"{_signature(function)}{_mismatch(params, params[: len(args)], named)}")
    return [*args, *map(named.__getitem__, rest)]


def _mismatch(params: Sequence[str], positional: Sequence[str], named: Mapping[str, Any]) -> str:
    """The part of the message that states which name of an argument is wrong or missing."""
    for name in named:
        if name not in params:
            return f" has no parameter {name}"
        if name in positional:
            return f": parameter {name} is given twice"
    missing = next(name for name in params if name not in positional and name not in named)
    return f": parameter {missing} is missing"


def convert(where: str, value: Any) -> Any:
    """Convert arrays to native byte order, row-major, contiguous and aligned; sequences to tuples.

    A value that needs no conversion is returned itself.  `where` names the value in errors.
    """
    match value:
        case np.ndarray() | np.generic():
            if "numpy.ma" in sys.modules and np.ma.is_masked(value):
                raise RunError(f"{where}: a masked array: fill it, by x.filled(0)")
            return _plain(value)
        case tuple() | list():
            fields = tuple(convert(where, v) for v in value)
            same = type(value) is tuple and all(map(is_, fields, value))
            return value if same else fields
        case _ if hasattr(type(value), "__dlpack__"):
            try:
                return _plain(from_dlpack(value))
            except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
                kind = type(value).__name__
                raise RunError(
                    f"{where}: cannot read the {kind} through DLPack: {error}"
                ) from error
        case _ if hasattr(type(value), "__array__"):
            return _plain(np.asarray(value))
        case _:
            return value


def _of_host(info: str, value: Any) -> Any:
    """`value`, with numpy scalars as Python numbers if the parameter is a number or a shape."""
    match value:
        case np.generic() if info.startswith("R.Prim("):
            return value.item()
        case tuple() | list() if info.startswith("R.Shape(") and any(
            isinstance(v, np.integer) for v in cast(Sequence[Any], value)
        ):
            extents = cast(Sequence[Any], value)
            return tuple(int(v) if isinstance(v, np.integer) else v for v in extents)
        case _:
            return value


_OTHER_NAMES = frozenset(
    dtype.num
    for dtype in map(np.dtype, np.typecodes["AllInteger"] + np.typecodes["Float"])
    if usual(dtype).num != dtype.num
)
"""The type numbers of dtypes that are aliases: ``longlong``, where that is ``int64``."""


def _is_plain(value: Any) -> bool:
    """Whether `value` is an array that needs no conversion."""
    if type(value) is not np.ndarray:
        return False
    flags, dtype = value.flags, value.dtype
    is_usual = dtype.isnative and dtype.num not in _OTHER_NAMES
    return is_usual and flags.c_contiguous and flags.aligned


def _plain(value: Any) -> np.ndarray[Any, Any]:
    if _is_plain(value):
        return value
    native = np.asarray(value, usual(value.dtype))
    return np.require(native, requirements=["C", "A"]).reshape(value.shape)


def _signature(function: VMFunction) -> str:
    pairs = zip(function.params, function.param_info, strict=True)
    params = ", ".join(f"{name}: {info}" if info else name for name, info in pairs)
    return f"{function.name}({params})"
