"""Arrays as the V2 protocol writes them: lists of JSON, and bytes in little-endian row-major order.

Numbers that JSON has no form for are the texts ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``, as in
the JSON form of protocol buffers, in which the protocol is defined, too.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from math import inf, isfinite, nan, prod
from typing import Any, cast

import numpy as np

from relax_egraph.inference.rows import Array
from relax_egraph.ir.dtypes import DTYPES, is_float
from relax_egraph.server.refusal import bad

_OWN_NAMES = {"bool": "BOOL", "bfloat16": "BF16"}

DATATYPES: Mapping[str, str] = {
    name: _OWN_NAMES.get(name) or name.upper().replace("FLOAT", "FP") for name in DTYPES
}
"""The protocol's name of each dtype."""

_NOT_FINITE: Mapping[object, float] = {"NaN": nan, "Infinity": inf, "-Infinity": -inf}
_NAMES = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def from_json(data: Sequence[object], dtype: str, shape: tuple[int, ...], where: str) -> Array:
    """The array of `shape` that `data` is: its elements in one list, or in lists of its shape.

    `where` begins the sentence of a refusal.  Floats too large for `dtype` become infinite.
    """
    extents, elements = _flat(data, where)
    size = prod(shape)
    cut_off = not size and extents == shape[: len(extents)]  # lists end where one is empty
    if extents not in (shape, (size,)) and not cut_off:
        found = list(extents) if len(extents) > 1 else f"{len(data)} elements"
        raise bad(f"{where}: data has {found}; shape {list(shape)} needs {size} elements")
    kinds = set(map(type, elements))
    if is_float(dtype) and str in kinds and kinds <= {int, float, str}:
        elements = [_NOT_FINITE.get(e, e) for e in elements]
        kinds = set(map(type, elements))
    if strays := kinds - _types(dtype):
        stray = next(e for e in elements if type(e) in strays)
        needed = "true or false" if dtype == "bool" else f"numbers of {DATATYPES[dtype]}"
        raise bad(f"{where}: data has {_short(stray)}, needs {needed}")
    read = "float64" if is_float(dtype) else dtype
    try:
        with np.errstate(over="ignore"):
            return np.array(elements, read).astype(dtype).reshape(shape)
    except OverflowError:
        raise bad(f"{where}: data has a number beyond the range of {DATATYPES[dtype]}") from None


def to_json(array: Array) -> list[Any]:
    """The elements of `array` in one list."""
    flat = array.reshape(-1)
    if not is_float(array.dtype.name):
        return flat.tolist()
    if array.dtype.itemsize == 2:
        flat = flat.astype("float32")
    values = cast(list[float], flat.tolist())
    if np.isfinite(flat).all():
        return values
    return [v if isfinite(v) else _NAMES[str(v)] for v in values]


def from_bytes(data: memoryview, dtype: str, shape: tuple[int, ...], where: str) -> Array:
    """The array of `shape` that lies in `data`; `where` begins the sentence of a refusal."""
    needed = prod(shape) * np.dtype(dtype).itemsize
    if len(data) != needed:
        kind = DATATYPES[dtype]
        raise bad(f"{where}: {len(data)} bytes; {kind} of shape {list(shape)} needs {needed}")
    if dtype == "bool" and data and np.frombuffer(data, "uint8").max() > 1:
        raise bad(f"{where}: a byte of BOOL is {max(data)}, needs 0 or 1")
    array = np.frombuffer(data, np.dtype(dtype).newbyteorder("<")).reshape(shape)
    return np.require(array.astype(dtype, copy=False), requirements=["A", "W"])


def to_bytes(array: Array) -> bytes:
    """The bytes of `array`."""
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def _types(dtype: str) -> set[type]:
    if dtype == "bool":
        return {bool}
    return {int, float} if is_float(dtype) else {int}


def _flat(data: Sequence[object], where: str) -> tuple[tuple[int, ...], Sequence[object]]:
    """The extents of lists within lists, and the elements of the innermost."""
    extents, level = [len(data)], data
    while level and set(map(type, level)) == {list}:
        lists = cast(Sequence[list[object]], level)
        if len(lengths := set(map(len, lists))) > 1:
            raise bad(f"{where}: data has lists of {min(lengths)} and of {max(lengths)} elements")
        extents += lengths
        level = list(chain.from_iterable(lists))
    return tuple(extents), level


def _short(value: object) -> str:
    match value:
        case list():
            return "lists beside numbers"
        case dict():
            return "an object"
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case _:
            text = repr(value)
            return text if len(text) <= 40 else f"{text[:39]}…"
