"""Memory for tensors: byte arrays whose first byte lies on a 64-byte line."""

import math
from ctypes import addressof, c_char
from typing import Any

import numpy as np
import numpy.typing as npt

ALIGNMENT = 64

Bytes = npt.NDArray[np.uint8]

_first_byte = c_char.from_buffer


def aligned_bytes(size: int, owner: Bytes | None = None) -> Bytes:
    """`size` uninitialised bytes, aligned to `ALIGNMENT`; of `owner`, which has room for it."""
    raw = np.empty(size + ALIGNMENT, np.uint8) if owner is None else owner
    # a quarter of the time of raw.ctypes.data
    start = -addressof(_first_byte(raw.data)) % ALIGNMENT
    return raw[start : start + size]


def tensor_at(
    storage: Bytes, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> npt.NDArray[Any]:
    """The tensor that lies in `storage` from byte `offset` on; raises ``ValueError`` if cut off."""
    if offset < 0 or offset + math.prod(shape) * dtype.itemsize > storage.size:
        raise ValueError(
            f"a tensor of {dtype.name}{list(shape)} at byte {offset} does not fit a storage of "
            f"{storage.size} bytes"
        )
    return np.ndarray(shape, dtype, storage, offset)
