"""The constant pool of an executable under construction."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from relax_egraph.errors import IllFormed
from relax_egraph.ir.dtypes import DTYPES, usual
from relax_egraph.vm.deferred import Deferred, materialize
from relax_egraph.vm.executable import ConstantValue


class ConstantPool:
    """Constants by index; the same array object, and equal other values, share an index.

    `Deferred` arrays are computed when `values` is read.
    """

    def __init__(self, values: Sequence[ConstantValue] = ()) -> None:
        self._values: list[ConstantValue] = []
        self._originals: list[ConstantValue] = []
        self._index: dict[Any, int] = {}
        for value in values:
            self._add(value)

    def __len__(self) -> int:
        return len(self._values)

    @property
    def values(self) -> tuple[ConstantValue, ...]:
        """All constants; arrays are read-only and contiguous."""
        for k, value in enumerate(self._values):
            if isinstance(value, Deferred):
                self._values[k] = _frozen(materialize(value))
        return tuple(self._values)

    def index(self, value: ConstantValue) -> int:
        """The index of `value`, which is added if it is new; raises `IllFormed` for no constant."""
        key = _key(value)
        return self._index[key] if key in self._index else self._add(value)

    def truncate(self, length: int) -> None:
        """Drop the constants from index `length` on."""
        for value in self._originals[length:]:
            self._index.pop(_key(value), None)
        del self._values[length:], self._originals[length:]

    def _add(self, value: ConstantValue) -> int:
        self._values.append(value if isinstance(value, Deferred) else _frozen(value))
        self._originals.append(value)  # keeps it alive, so that its id stays unique
        return self._index.setdefault(_key(value), len(self._values) - 1)


def _key(value: ConstantValue) -> Any:
    match value:
        case np.ndarray():
            return ("tensor", id(value))
        case float():
            return ("float", value.hex())
        case _:
            return (type(value), repr(value))


def _frozen(value: ConstantValue) -> ConstantValue:
    match value:
        case np.ndarray() if value.dtype.name in DTYPES:
            native = np.asarray(value, usual(value.dtype))
            constant = np.ascontiguousarray(native).reshape(value.shape).view()
            constant.flags.writeable = False
            return constant
        case int() | float() | str() | np.dtype():
            return value
        case tuple() if all(type(v) is int for v in value):
            return value
        case _:
            what = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else repr(value)
            raise IllFormed(
                f"{what} is no constant: needs an array of numbers, a tuple of ints, an int, "
                "a float, a str or a dtype"
            )
