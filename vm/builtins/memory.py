"""Storages, tensors in storages, and operations on the memory of tensors."""

import math
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from relax_egraph.errors import ExecutableError, RunError
from relax_egraph.ir.dtypes import DTYPES
from relax_egraph.vm.builtins.builtin import Builtin, Packed, bound, of_values, wrong
from relax_egraph.vm.matching import describe, is_shape, shape_text
from relax_egraph.vm.storage import Bytes

Array = npt.NDArray[Any]

_BYTE = np.dtype(np.uint8)


class Allocates(Protocol):
    """A machine, as far as builtins use it."""

    def allocate(self, size: int) -> Bytes:
        """Storage of at least `size` bytes, aligned to 64 bytes."""
        ...


def alloc_storage(vm: Any, size: Any) -> Bytes:
    """Uninitialised bytes, aligned to 64 bytes."""
    if type(size) is not int:
        raise wrong("alloc_storage", "size", size, "an integer")
    if size < 0:
        raise RunError(f"a storage of {size} bytes cannot be allocated")
    if not hasattr(vm, "allocate"):
        raise wrong("alloc_storage", "vm", vm, "the machine")
    machine: Allocates = vm
    try:
        return machine.allocate(size)
    except (MemoryError, ValueError, OverflowError):  # OverflowError: beyond the address space
        raise RunError(f"a storage of {size} bytes cannot be allocated") from None


def size_of(dtype: str) -> Packed:
    """The size in bytes of a tensor of a shape and `dtype`."""
    itemsize = element_type(dtype).itemsize

    def size(shape: Any) -> int:
        if not is_shape(shape):
            raise wrong("size_of", "shape", shape, "a shape")
        return math.prod(shape) * itemsize

    return size


def alloc_tensor(dtype: str) -> Packed:
    """The tensor of a shape at an offset, in bytes, of a storage."""
    element = element_type(dtype)
    itemsize = element.itemsize

    def alloc(storage: Any, offset: Any, shape: Any) -> Array:
        if type(storage) is not np.ndarray or storage.dtype != _BYTE:
            raise wrong("alloc_tensor", "storage", storage, "a storage")
        if type(offset) is not int:
            raise wrong("alloc_tensor", "offset", offset, "an integer")
        if type(shape) is not tuple:
            raise wrong("alloc_tensor", "shape", shape, "a shape")
        size = itemsize
        for extent in cast(tuple[Any, ...], shape):
            if type(extent) is not int or extent < 0:
                raise wrong("alloc_tensor", "shape", shape, "a shape, no extent negative")
            size *= extent
        if offset < 0 or offset + size > storage.size:
            raise RunError(
                f"a tensor of {element.name}{list(cast(tuple[int, ...], shape))} at byte {offset} "
                f"does not fit a storage of {storage.size} bytes"
            )
        try:
            return np.ndarray(shape, element, storage, offset)
        except ValueError as error:  # too many axes, or an extent too large for numpy
            raise RunError(f"a tensor of {describe(shape)}: {error}") from None

    return alloc


def kill(value: Any) -> None:
    """No value: with its register as `dst`, a value is released."""


def copy(value: Any) -> Any:
    """The value itself, for another register."""
    return value


def reshape(x: Any, shape: Any) -> Array:
    """A view of `x` in another shape, with the elements in row-major order."""
    if not isinstance(x, np.ndarray):
        raise wrong("reshape", "x", x, "a tensor")
    if not is_shape(shape):
        raise wrong("reshape", "shape", shape, "a shape")
    if math.prod(shape) != x.size:
        raise RunError(
            f"R.reshape of {describe(x)} to {shape_text(shape)}: "
            f"{x.size} elements do not fill {math.prod(shape)}"
        )
    if any(extent < 0 for extent in shape):  # numpy would fill in a -1
        raise RunError(f"R.reshape of {describe(x)} to {shape_text(shape)}: an extent is negative")
    try:
        return x.reshape(shape)
    except ValueError as error:  # too many axes
        raise RunError(f"R.reshape of {describe(x)} to {shape_text(shape)}: {error}") from None


def writable(x: Any) -> Array:
    """`x` itself, or a copy if it is read-only, such as a constant."""
    if not isinstance(x, np.ndarray):
        raise wrong("writable", "x", x, "a tensor")
    return x if x.flags.writeable else x.copy()


def unique(x: Any) -> Array:
    """The distinct elements of `x`, ascending."""
    if not isinstance(x, np.ndarray) or x.dtype.name not in DTYPES:
        raise wrong("unique", "x", x, "a tensor")
    return np.unique(x)


def element_type(name: str) -> np.dtype[Any]:
    """The dtype `name`; raises `ExecutableError` if it does not exist."""
    if name not in DTYPES:
        raise ExecutableError(f"no dtype {name!r}")
    return np.dtype(name)


MEMORY: tuple[Builtin, ...] = (
    of_values(alloc_storage),
    bound(size_of, "shape"),
    bound(alloc_tensor, "storage", "offset", "shape"),
    of_values(kill),
    of_values(copy),
    of_values(reshape),
    of_values(writable),
    of_values(unique),
)
