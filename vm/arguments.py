"""From what the user gives to what a function takes: by position or name, as numpy arrays."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relax_egraph.errors import RunError
from relax_egraph.vm.dlpack import from_dlpack
from relax_egraph.vm.executable import VMFunction


def arrange(function: VMFunction, args: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
    """The arguments in the order of the parameters, as the machine takes them.

    Raises `RunError` unless every parameter is given exactly once.
    """
    params = function.params
    if not named and len(args) == len(params) and all(map(_is_plain, args)):
        return list(args)
    if len(args) > len(params) or (not named and len(args) < len(params)):
        noun = "argument" if len(params) == 1 else "arguments"
        raise RunError(f"{_signature(function)} takes {len(params)} {noun}, got {len(args)}")
    values = dict(zip(params, args, strict=False))
    for name, value in named.items():
        if name not in params:
            raise RunError(f"{_signature(function)} has no parameter {name}")
        if name in values:
            raise RunError(f"{_signature(function)}: parameter {name} is given twice")
        values[name] = value
    for name in params:
        if name not in values:
            raise RunError(f"{_signature(function)}: parameter {name} is missing")
    return [convert(f"{function.name}: parameter {name}", values[name]) for name in params]


def convert(where: str, value: Any) -> Any:
    """Arrays in native byte order, row-major, contiguous and aligned; sequences as tuples.

    `where` is what an error calls the value.
    """
    match value:
        case np.ndarray() | np.generic():
            return _plain(value)
        case tuple() | list():
            return tuple(convert(where, v) for v in value)
        case _ if hasattr(value, "__dlpack__"):
            try:
                return _plain(from_dlpack(value))
            except (BufferError, RuntimeError, TypeError, ValueError) as error:
                kind = type(value).__name__
                raise RunError(
                    f"{where}: cannot read the {kind} through DLPack: {error}"
                ) from error
        case _:
            return value


def _is_plain(value: Any) -> bool:
    """Whether `value` is an array that the machine takes as it is."""
    if type(value) is not np.ndarray:
        return False
    flags = value.flags
    return flags.c_contiguous and flags.aligned and value.dtype.isnative


def _plain(value: Any) -> np.ndarray[Any, Any]:
    if _is_plain(value):
        return value
    native = np.asarray(value, value.dtype.newbyteorder("="))
    return np.require(native, requirements=["C", "A"]).reshape(value.shape)


def _signature(function: VMFunction) -> str:
    pairs = zip(function.params, function.param_info, strict=True)
    params = ", ".join(f"{name}: {info}" if info else name for name, info in pairs)
    return f"{function.name}({params})"
