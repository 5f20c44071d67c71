"""Exchange of arrays with other libraries through DLPack, including bfloat16."""

import ctypes
from operator import is_
from typing import Any, cast

import numpy as np

_BFLOAT16 = np.dtype("bfloat16")

BFLOAT, UINT = 4, 1
"""The type codes of elements in `dlpack.h`."""

_READABLE = {1, 3, 11, 13}
"""Device types whose memory the CPU can read: itself, and host memory of CUDA and ROCm."""

_DEVICES = {2: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 14: "oneAPI", 15: "WebGPU"}


class Head(ctypes.Structure):
    """The first fields of ``DLManagedTensor``, up to the type of the elements."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
    )


_VERSIONED = 32
"""The offset of those fields in ``DLManagedTensorVersioned``."""

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)


class _Capsule:
    """An object that exports a capsule once."""

    def __init__(self, capsule: Any, device: tuple[int, int]) -> None:
        self._capsule, self._device = capsule, device

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device


def head_of(capsule: Any) -> Head:
    """The first fields of the tensor in `capsule`, in place."""
    versioned = _is_valid(capsule, b"dltensor_versioned")
    address = _pointer(capsule, b"dltensor_versioned" if versioned else b"dltensor")
    assert address is not None
    return Head.from_address(address + (_VERSIONED if versioned else 0))


class Result(np.ndarray[Any, np.dtype[Any]]):
    """An array of bfloat16 that exports through DLPack.

    numpy cannot export such an array.
    """

    def __dlpack__(self, **options: Any) -> Any:
        """Export the array, like numpy, but also of bfloat16."""
        if self.dtype != _BFLOAT16:
            return super().__dlpack__(**options)
        capsule = self.view(np.ndarray).view(np.uint16).__dlpack__(**options)
        head_of(capsule).code = BFLOAT
        return capsule


def exported(value: Any) -> Any:
    """`value`, with arrays of bfloat16 as `Result`."""
    if type(value) is np.ndarray:
        return value.view(Result) if value.dtype is _BFLOAT16 else value
    if type(value) is tuple:
        fields = tuple(map(exported, cast(tuple[Any, ...], value)))
        return value if all(map(is_, fields, value)) else fields
    return value


def from_dlpack(value: Any) -> np.ndarray[Any, Any]:
    """The memory of `value` as an array; raises the errors of ``numpy.from_dlpack``.

    ``BufferError`` if the memory belongs to another device.
    """
    if hasattr(value, "resolve_neg"):  # torch exports no flag for lazy negation
        value = value.resolve_neg()
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError):
        kind, number = value.__dlpack_device__()
        if kind not in _READABLE:
            device = f"{_DEVICES.get(kind, f'DLPack type {kind}')} device {number}"
            raise BufferError(f"it lies on {device}, needs the memory of the CPU") from None
        capsule = value.__dlpack__()
        head = head_of(capsule)
        if (head.code, head.bits, head.lanes) != (BFLOAT, 16, 1):
            raise
        head.code = UINT  # a type of the same size that numpy knows; the capsule is ours
        return np.from_dlpack(_Capsule(capsule, (kind, number))).view("bfloat16")
