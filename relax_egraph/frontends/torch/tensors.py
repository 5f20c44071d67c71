"""Tensors of torch as arrays, which share their memory, and as struct info."""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from relax_egraph.errors import ModelError
from relax_egraph.ir.dtypes import DTYPES

Array: TypeAlias = npt.NDArray[Any]


QUANTIZED = "its tensor is quantized, needs its integers and scale: x.int_repr(), x.q_scale()"


PARTS = {torch.complex32: "float16", torch.complex64: "float32", torch.complex128: "float64"}
"""The dtypes of complex numbers, with those of their parts."""


def dtype_of(dtype: torch.dtype) -> str:
    """Our name of `dtype`, of complex ones that of their parts; raises `ModelError` for others."""
    if dtype in PARTS:
        return PARTS[dtype]
    name = str(dtype).removeprefix("torch.")
    if name.startswith(("qint", "quint")):
        raise ModelError(QUANTIZED)
    if name not in DTYPES:
        raise ModelError(f"tensors of {name} are not supported")
    return name


def check_supported(value: torch.Tensor) -> None:
    """Raise `ModelError` unless `value` is a strided tensor in the memory of the CPU."""
    if value.layout != torch.strided:
        layout = str(value.layout).removeprefix("torch.")
        raise ModelError(f"it is a tensor of layout {layout}, needs a strided one: x.to_dense()")
    if value.device.type != "cpu":
        raise ModelError(f"it is on the device {value.device}, needs the CPU")
    dtype_of(value.dtype)


def array_of(value: torch.Tensor) -> Array:
    """The elements of `value`, without a copy; raises `ModelError` if it is not supported.

    Parts of complex numbers are along a last axis.
    """
    check_supported(value)
    plain = value.detach().resolve_neg()
    if plain.is_complex():
        plain = torch.view_as_real(plain.resolve_conj())
    if plain.dtype == torch.bfloat16:
        return plain.view(torch.int16).numpy().view(np.dtype("bfloat16"))
    return plain.numpy()


def tensor_of(array: Array, *, of_complex: bool = False) -> torch.Tensor:
    """A tensor on the memory of `array`, `of_complex` numbers if its last axis has their parts."""
    if of_complex:
        return torch.view_as_complex(torch.from_numpy(array))  # type: ignore[no-untyped-call]
    if array.dtype == np.dtype("bfloat16"):
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)  # type: ignore[no-untyped-call]
    return torch.from_numpy(array)  # type: ignore[no-untyped-call]
