"""The element types of tensors, in one table.

``float16`` and ``bfloat16`` are *storage types*: their values are computed in float32, and rounded
to nearest, ties to even, where they are written to memory or cast.  A fused kernel so rounds once,
at its end.  Every conversion to a storage type goes through float32.

The names are those of numpy; ``bfloat16`` is that of `ml_dtypes`, and ``np.dtype("bfloat16")``
works because this module imports `ml_dtypes`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

Kind: TypeAlias = Literal["bool", "int", "uint", "float"]


@dataclass(frozen=True, slots=True)
class DType:
    """An element type: its kind, its bits of memory, and the dtype of its arithmetic.

    `computed` is its own name, except for storage types.
    """

    name: str
    kind: Kind
    bits: int
    computed: str


def _plain(kind: Kind, bits: int, name: str = "") -> DType:
    name = name or f"{kind}{bits}"
    return DType(name, kind, bits, name)


TABLE: Mapping[str, DType] = {
    dtype.name: dtype
    for dtype in (
        _plain("bool", 8, "bool"),
        *(_plain("int", bits) for bits in (8, 16, 32, 64)),
        *(_plain("uint", bits) for bits in (8, 16, 32, 64)),
        DType("float16", "float", 16, "float32"),
        DType("bfloat16", "float", 16, "float32"),
        *(_plain("float", bits) for bits in (32, 64)),
    )
}
"""Every dtype, by numpy's name."""

DTYPES = tuple(TABLE)
"""The names of all dtypes."""

FLOATS = tuple(d for d in DTYPES if TABLE[d].kind == "float")
INTEGERS = tuple(d for d in DTYPES if TABLE[d].kind in ("int", "uint"))

STORED = tuple(d for d in DTYPES if TABLE[d].computed != d)
"""The storage types."""


@lru_cache(256)
def name_of(dtype: np.dtype[Any]) -> str:
    """The name of `dtype`, memoised: numpy computes it at each access."""
    return dtype.name


def usual(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """`dtype` in this machine's byte order; of several dtypes of one name, the usual one.

    numpy has types of C beside types of a size: ``longlong`` is another object than ``int64``.
    """
    return np.dtype(dtype.name) if dtype.name in TABLE else dtype.newbyteorder("=")


def is_float(dtype: str) -> bool:
    """Whether `dtype` is a floating-point type."""
    return dtype in FLOATS


def is_integer(dtype: str) -> bool:
    """Whether `dtype` is an integer type, signed or unsigned."""
    return dtype in INTEGERS


def is_signed(dtype: str) -> bool:
    """Whether numbers of `dtype` may be below 0; booleans count as 0 and 1."""
    return TABLE[dtype].kind in ("int", "float")


def is_stored(dtype: str | None) -> bool:
    """Whether `dtype` is a storage type; ``None`` is an unknown dtype."""
    return dtype in STORED


def computed(dtype: str) -> str:
    """The dtype of arithmetic on values of `dtype`."""
    return TABLE[dtype].computed


def limits(dtype: str) -> Any:
    """``np.finfo`` of a floating-point `dtype`, also of one that numpy lacks."""
    return ml_dtypes.finfo(np.dtype(dtype))


def converted(values: npt.NDArray[Any], dtype: str) -> npt.NDArray[Any]:
    """`values` in `dtype`, as kernels convert them.

    A float is rounded towards 0 to an integer and clamped to the integers' range; NaN becomes 0.
    """
    if not is_integer(dtype) or not is_float(values.dtype.name):
        return values.astype(dtype)
    floats = values.astype(computed(values.dtype.name))
    least, greatest = np.iinfo(dtype).min, np.iinfo(dtype).max
    above, below = floats >= float(greatest), floats <= float(least)
    inside = np.where(above | below | np.isnan(floats), 0, floats).astype(dtype)
    return np.where(above, inside.dtype.type(greatest), np.where(below, least, inside))


def scalar(value: float, dtype: str) -> npt.NDArray[Any]:
    """`value` as a tensor of rank 0 and `dtype`, as kernels convert it."""
    with np.errstate(over="ignore"):
        return converted(np.asarray(value, np.float64), dtype)


def from_file(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An array of ``numpy.load``, whose files do not keep the name ``bfloat16``, with its dtype."""
    return array.view("bfloat16") if array.dtype == np.dtype("V2") else array
