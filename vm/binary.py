"""The binary format of executables: the contents of each section of the file (`sections.py`).

`functions`, `callees`, `origins`, `constants`, `kernels`, `work` and `metadata` are JSON;
`code` and `offsets` are words; `tensors` and `objects` are raw bytes that `constants` and `kernels`
refer to: tensors are aligned to 64 bytes, and an object that several kernel sets share is stored
once.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from relax_egraph.base.files import replacing
from relax_egraph.errors import ExecutableError
from relax_egraph.vm.executable import ConstantValue, Executable, KernelSet
from relax_egraph.vm.file_map import bytes_of
from relax_egraph.vm.native.program import Driver
from relax_egraph.vm.reading import read_executable
from relax_egraph.vm.sections import Contents, chunks, read_sections, round_up
from relax_egraph.vm.storage import aligned_bytes


def to_bytes(executable: Executable) -> bytes:
    """See `Executable.to_bytes`."""
    return b"".join(chunks(_contents(executable)))


def save(executable: Executable, path: Path) -> None:
    """See `Executable.save`."""
    contents = _contents(executable)
    with replacing(path) as file:
        file.writelines(chunks(contents))


def load(path: Path, digest: str | None = None, *, mapped: bool = True) -> Executable:
    """See `Executable.load`."""
    data = bytes_of(path, mapped=mapped)
    if digest is not None:
        actual = hashlib.sha256(data.data).hexdigest()
        if actual != digest.lower():
            raise ExecutableError(f"{path}: the SHA-256 digest is {actual}, needs {digest}")
    return read_executable(read_sections(data))


def from_bytes(data: bytes) -> Executable:
    """Read the result of `to_bytes`; raises `ExecutableError`."""
    copy = aligned_bytes(len(data))
    copy[:] = np.frombuffer(data, np.uint8)
    return read_executable(read_sections(copy))


def restored(data: bytes, linker: Any, driver: Driver | None) -> Executable:
    """Unpickle an executable from the result of `to_bytes`."""
    executable = from_bytes(data)
    executable.linker, executable.driver = linker, driver
    return executable


def same(a: Executable, b: Executable) -> bool:
    """Whether `a` and `b` have the same `to_bytes`."""
    ours, others = _contents(a), _contents(b)
    return all(
        len(ours[name]) == len(others[name])
        and all(_same_bytes(*pair) for pair in zip(ours[name], others[name], strict=True))
        for name in ours
    )


def _same_bytes(a: bytes | memoryview, b: bytes | memoryview) -> bool:
    return np.array_equal(np.frombuffer(a, np.uint8), np.frombuffer(b, np.uint8))


def _contents(executable: Executable) -> Contents:
    functions = [
        [f.name, f.params, f.num_registers, f.start, f.end, f.param_info, f.private]
        for f in executable.functions
    ]
    tensors: list[bytes | memoryview] = []
    constants: list[list[Any]] = []
    at = 0
    for constant in executable.constants:
        if isinstance(constant, np.ndarray):
            tensors.append(bytes(round_up(at) - at))
            at = round_up(at)
            constants.append(["tensor", constant.dtype.name, constant.shape, at])
            tensors.append(constant.reshape(-1).view(np.uint8).data)
            at += constant.nbytes
        else:
            constants.append(_small_constant(constant))
    kernels, objects = _kernels(executable.kernels)
    return {
        "functions": [_json("functions", functions)],
        "callees": [_json("callees", executable.callees)],
        "code": [executable.code.astype("<i8").tobytes()],
        "offsets": [executable.offsets.astype("<i8").tobytes()],
        "origins": [_json("origins", executable.origins)],
        "constants": [_json("constants", constants)],
        "tensors": tensors,
        "kernels": [_json("kernels", kernels)],
        "objects": objects,
        "work": [_json("work", dict(executable.work))],
        "metadata": [_json("metadata", dict(executable.metadata))],
    }


def _kernels(kernel_sets: Sequence[KernelSet]) -> tuple[dict[str, Any], list[bytes]]:
    """The table, and the distinct objects of all sets."""
    places: dict[bytes, int] = {}
    sets = [
        [
            *(k.target, dict(k.symbols)),
            [places.setdefault(part, len(places)) for part in (k.code, *k.objects)],
        ]
        for k in kernel_sets
    ]
    return {"sizes": [len(part) for part in places], "sets": sets}, list(places)


def _small_constant(constant: ConstantValue) -> list[Any]:
    match constant:
        case tuple():
            return ["shape", constant]
        case float():
            return ["float", constant.hex()]
        case np.dtype():
            return ["dtype", constant.name]
        case _:
            return [type(constant).__name__, constant]


def _json(section: str, value: Any) -> bytes:
    text = json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        shown = ascii(text[error.start : error.end])
        raise ExecutableError(f"section {section}: {shown} is no character") from None
