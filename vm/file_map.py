"""The bytes of a file as an array."""

import mmap
import os
from pathlib import Path

import numpy as np

from relax_egraph.vm.storage import Bytes, aligned_bytes


def bytes_of(path: Path, *, mapped: bool) -> Bytes:
    """The file at `path`: a map of it, or a copy where it is not to be `mapped` or cannot be."""
    with path.open("rb") as file:
        if mapped:
            try:
                return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
            except (OSError, ValueError):  # a file system without maps; an empty file
                pass
        data = aligned_bytes(os.fstat(file.fileno()).st_size)
        return data[: file.readinto(data.data)]
