"""Types and constants of MLIR as struct info and arrays."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxlib.mlir import ir

from relax_egraph.errors import ModelError
from relax_egraph.ir.dtypes import DTYPES

_DTYPES: Mapping[str, str] = {
    "i1": "bool",
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "index": "int64",
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}
"""Our dtypes by the names of MLIR's element types."""

assert set(_DTYPES.values()) == set(DTYPES)


def dtype_of(kind: ir.Type) -> str:
    """The dtype of a tensor type; raises `ModelError` if it is none of ours."""
    if not isinstance(kind, ir.RankedTensorType):
        raise ModelError(f"{kind} is not a tensor of known rank")
    name = _DTYPES.get(str(kind.element_type))
    if name is None:
        raise ModelError(f"tensors of {kind.element_type} are not supported")
    return name


def shape_of(kind: ir.Type) -> tuple[int | None, ...]:
    """The shape of a tensor type, with ``None`` for an extent that is not static."""
    assert isinstance(kind, ir.RankedTensorType)
    return tuple(None if kind.is_dynamic_dim(k) else kind.get_dim_size(k) for k in range(kind.rank))


def array_of(attribute: ir.Attribute) -> npt.NDArray[Any]:
    """The elements of a constant."""
    dtype = dtype_of(attribute.type)
    shape = tuple(attribute.type.shape)
    if dtype == "bfloat16":
        return _bfloat16(str(attribute), shape)
    if attribute.is_splat and isinstance(attribute, ir.DenseElementsAttr):
        value = attribute.get_splat_value().value
        return np.broadcast_to(np.asarray(value, dtype), shape).copy()
    return np.array(attribute).astype(dtype, copy=False).reshape(shape)


_NUMBER = re.compile(r"0x[0-9A-Fa-f]+|[-+0-9.eE]+")


def _bfloat16(text: str, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """The elements of the text ``dense<…> : type``: Python has no buffers of bfloat16."""
    inner = text[text.index("<") + 1 : text.rindex("> :")]
    dtype = np.dtype("bfloat16")
    if inner.startswith('"0x'):
        flat = np.frombuffer(bytes.fromhex(inner[3:-1]), dtype)
    else:
        flat = np.array([_number(n) for n in _NUMBER.findall(inner)], np.float32).astype(dtype)
    return np.broadcast_to(flat.reshape(shape if flat.size != 1 else ()), shape).copy()


def _number(text: str) -> float:
    if text.startswith("0x"):
        return float(np.array([int(text, 16)], np.uint16).view(np.dtype("bfloat16"))[0])
    return float(text)
