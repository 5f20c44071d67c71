"""Memory for tensors: byte arrays aligned to 64 bytes."""

import math
from ctypes import addressof, c_char
from typing import Any

import numpy as np
import numpy.typing as npt

ALIGNMENT = 64

Bytes = npt.NDArray[np.uint8]

_first_byte = c_char.from_buffer


def aligned_bytes(size: int) -> Bytes:
    """`size` uninitialised bytes, aligned to `ALIGNMENT`."""
    raw = np.empty(size + ALIGNMENT, np.uint8)
    start = -address_of(raw) % ALIGNMENT
    return raw[start : start + size]


def address_of(raw: Bytes) -> int:
    """Where bytes begin."""
    return addressof(_first_byte(raw.data))  # four times as fast as raw.ctypes.data


def tensor_at(
    storage: Bytes, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> npt.NDArray[Any]:
    """The tensor at byte `offset` of `storage`; raises ``ValueError`` if it does not fit."""
    if offset < 0 or offset + math.prod(shape) * dtype.itemsize > storage.size:
        raise ValueError(
            f"a tensor of {dtype.name}{list(shape)} at byte {offset} does not fit a storage of "
            f"{storage.size} bytes"
        )
    return np.ndarray(shape, dtype, storage, offset)
