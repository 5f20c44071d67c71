"""Tensors of a model as arrays; data in files are memory-mapped."""

import math
import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper

from relax_egraph.errors import ModelError
from relax_egraph.frontends.onnx.wire import ITSELF
from relax_egraph.ir.dtypes import DTYPES

_NAMES: Mapping[int, str] = {
    number: name.lower().replace("float", "float32", name == "FLOAT").replace("double", "float64")
    for name, number in onnx.TensorProto.DataType.items()
}
"""Names of dtypes by number, including unsupported ones: ``float32`` is 1."""


def dtype_of(elem_type: int) -> str:
    """The dtype of the number `elem_type`; raises `ModelError` if it is unsupported."""
    name = _NAMES.get(elem_type, f"type {elem_type}")
    if name not in DTYPES:
        raise ModelError(f"tensors of {name} are not supported")
    return name


def elem_type_of(dtype: str) -> int:
    """The number of `dtype` in a model."""
    return next(number for number, name in _NAMES.items() if name == dtype)


class Store:
    """The data of tensors: in the model, in its file, or in files of its folder.

    A model that does not come from a file has no `folder` and no external data.
    """

    def __init__(self, itself: memoryview | None = None, folder: Path | None = None) -> None:
        self._itself = itself
        self._folder = folder
        self._files: dict[str, memoryview] = {}
        self._copies: dict[tuple[int, int, str], npt.NDArray[Any]] = {}

    def array(self, tensor: onnx.TensorProto) -> npt.NDArray[Any]:
        """The elements of `tensor`: a read-only view of the map, or a copy if they are unaligned.

        Raises `ModelError` if they are missing, or outside of the model's folder.
        """
        dtype = np.dtype(dtype_of(tensor.data_type))
        shape = tuple(tensor.dims)
        if any(extent < 0 for extent in shape):
            raise ModelError(f"tensor {tensor.name!r} has the shape {list(shape)}")
        try:
            if tensor.data_location == onnx.TensorProto.EXTERNAL:
                data = self._mapped(tensor, math.prod(shape) * dtype.itemsize)
                return self._aligned(tensor.name, data, dtype).reshape(shape)
            return np.asarray(numpy_helper.to_array(tensor)).astype(dtype, copy=False)
        except ModelError:
            raise
        except (ValueError, TypeError, OverflowError) as error:
            raise ModelError(f"tensor {tensor.name!r} does not read: {error}") from None

    def _aligned(self, name: str, data: memoryview, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """The array in `data`; pages of a mapped file that were read for a copy are released."""
        array = np.frombuffer(data, dtype)
        if array.flags.aligned:
            return array
        key = array.ctypes.data, array.nbytes, dtype.name
        if key not in self._copies:
            files = [*self._files.values(), *([] if self._itself is None else [self._itself])]
            copied = array.nbytes + sum(c.nbytes for c in self._copies.values())
            if copied > _OFTEN * sum(map(len, files)):
                raise ModelError(
                    f"tensor {name!r} is unaligned and overlaps others: {copied} bytes to copy"
                )
            self._copies[key] = array.copy()
            if isinstance(data.obj, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
                data.obj.madvise(mmap.MADV_DONTNEED)
        return self._copies[key]

    def _mapped(self, tensor: onnx.TensorProto, size: int) -> memoryview:
        entries = {entry.key: entry.value for entry in tensor.external_data}
        location = entries.get("location", "")
        whole = self._file(tensor.name, location)
        try:
            offset = int(entries.get("offset", 0))
            length = int(entries.get("length", size))
        except ValueError:
            raise ModelError(f"tensor {tensor.name!r} has no place in {location}") from None
        if length != size or not 0 <= offset <= len(whole) - size:
            where = "the model" if location == ITSELF else location
            raise ModelError(
                f"tensor {tensor.name!r} of {size} bytes is declared as {length} bytes "
                f"at {offset} of {where}, which has {len(whole)}"
            )
        return whole[offset : offset + size]

    def _file(self, tensor: str, location: str) -> memoryview:
        if location == ITSELF and self._itself is not None:
            return self._itself
        if location in self._files:
            return self._files[location]
        if self._folder is None:
            raise ModelError(f"tensor {tensor!r} is in {location!r}: pass the path of the model")
        try:
            path = (self._folder / location).resolve() if "\0" not in location else self._folder
            is_file = path.is_file()
        except (OSError, RuntimeError):  # a name too long, or a cycle of links
            path, is_file = self._folder, False
        inside = path.resolve().is_relative_to(self._folder.resolve())
        if not inside or Path(location).is_absolute():
            raise ModelError(f"tensor {tensor!r} is in {location!r}, outside of the model's folder")
        if not is_file:
            raise ModelError(f"tensor {tensor!r} is in {location!r}, which is no file")
        self._files[location] = mapped(path)
        return self._files[location]


_OFTEN = 2
"""The most copies of the bytes of a file: tensors may overlap, and be unaligned."""


def mapped(path: Path) -> memoryview:
    """A memory map of a file."""
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
