"""The binary form of executables: one file of checksummed sections.

    magic (8) · version (u32) · number of sections (u32)
    for each section: name (16) · offset (u64) · length (u64) · crc32 (u32) · zero (u32)
    crc32 of all of the above (u32) · zero (u32)
    the sections, each on a 64-byte line, zeros between

All numbers are little-endian.  `functions`, `constants`, `callees`, `kernels` and `metadata`
are JSON; `tensors`, `code`, `offsets` and `objects` are raw.  The sections come in one order,
and nothing else is in the file.
"""

import json
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from relax_egraph.errors import ExecutableError
from relax_egraph.vm.executable import ConstantValue, Executable
from relax_egraph.vm.reading import Sections, read_executable
from relax_egraph.vm.storage import ALIGNMENT, Bytes, aligned_bytes

MAGIC = b"\x89RXE\r\n\x1a\n"
VERSION = 1

SECTIONS = (
    *("functions", "callees", "code", "offsets", "constants", "tensors"),
    *("kernels", "objects", "metadata"),
)

_HEAD = struct.Struct("<8sII")
_ENTRY = struct.Struct("<16sQQII")
_CHECKSUM = struct.Struct("<II")
_HEADER_SIZE = _HEAD.size + len(SECTIONS) * _ENTRY.size + _CHECKSUM.size


def to_bytes(executable: Executable) -> bytes:
    """See `Executable.to_bytes`."""
    return b"".join(_chunks(executable))


def save(executable: Executable, path: Path) -> None:
    """See `Executable.save`."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with aside.open("wb") as file:
            for chunk in _chunks(executable):
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def load(path: Path) -> Executable:
    """See `Executable.load`."""
    with path.open("rb") as file:
        data = aligned_bytes(os.fstat(file.fileno()).st_size)
        count = file.readinto(data.data)
    return read_executable(_sections(data[:count]))


def from_bytes(data: bytes) -> Executable:
    """Read what `to_bytes` made; raises `ExecutableError`."""
    copy = aligned_bytes(len(data))
    copy[:] = np.frombuffer(data, np.uint8)
    return read_executable(_sections(copy))


# --- writing --------------------------------------------------------------------------


def _chunks(executable: Executable) -> Iterator[bytes | memoryview]:
    contents = _contents(executable)
    entries: list[bytes] = []
    end = _HEADER_SIZE
    for name in SECTIONS:
        start = _round_up(end)
        length = sum(len(part) for part in contents[name])
        crc = 0
        for part in contents[name]:
            crc = zlib.crc32(part, crc)
        entries.append(_ENTRY.pack(name.encode(), start, length, crc, 0))
        end = start + length
    header = _HEAD.pack(MAGIC, VERSION, len(SECTIONS)) + b"".join(entries)
    yield header
    yield _CHECKSUM.pack(zlib.crc32(header), 0)
    at = _HEADER_SIZE
    for name in SECTIONS:
        yield bytes(_round_up(at) - at)
        yield from contents[name]
        at = _round_up(at) + sum(len(part) for part in contents[name])


def _contents(executable: Executable) -> dict[str, list[bytes | memoryview]]:
    functions = [
        [f.name, f.params, f.num_registers, f.start, f.end, f.param_info, f.private]
        for f in executable.functions
    ]
    tensors: list[bytes | memoryview] = []
    constants: list[list[Any]] = []
    at = 0
    for constant in executable.constants:
        if isinstance(constant, np.ndarray):
            tensors.append(bytes(_round_up(at) - at))
            at = _round_up(at)
            constants.append(["tensor", constant.dtype.name, constant.shape, at])
            tensors.append(constant.reshape(-1).view(np.uint8).data)
            at += constant.nbytes
        else:
            constants.append(_small_constant(constant))
    kernels = [[k.target, len(k.code), dict(k.symbols)] for k in executable.kernels]
    return {
        "functions": [_json(functions)],
        "callees": [_json(executable.callees)],
        "code": [executable.code.astype("<i8").tobytes()],
        "offsets": [executable.offsets.astype("<i8").tobytes()],
        "constants": [_json(constants)],
        "tensors": tensors,
        "kernels": [_json(kernels)],
        "objects": [k.code for k in executable.kernels],
        "metadata": [_json(dict(executable.metadata))],
    }


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


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def _round_up(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


# --- the section table ----------------------------------------------------------------


def _sections(data: Bytes) -> Sections:
    """The contents of each section, in place; checks magic, version, lengths and checksums."""
    if bytes(data[: len(MAGIC)]) != MAGIC:
        raise ExecutableError("header: this is no executable of relax-egraph")
    if data.size < _HEADER_SIZE:
        raise ExecutableError(f"header: cut off after {data.size} of {_HEADER_SIZE} bytes")
    raw = bytes(data[:_HEADER_SIZE])
    _, version, count = _HEAD.unpack_from(raw)
    if version != VERSION:
        raise ExecutableError(
            f"header: version {version} of the format, this program reads {VERSION}"
        )
    table = raw[: -_CHECKSUM.size]
    if _CHECKSUM.unpack_from(raw, len(table)) != (zlib.crc32(table), 0):
        raise ExecutableError("header: the checksum does not match")
    if count != len(SECTIONS):
        raise ExecutableError(f"header: {count} sections, needs {len(SECTIONS)}")
    entries = list(_ENTRY.iter_unpack(table[_HEAD.size :]))
    return dict(_section(data, *pair) for pair in zip(SECTIONS, entries, strict=True))


def _section(data: Bytes, name: str, entry: Sequence[Any]) -> tuple[str, Bytes]:
    written, start, length, crc, _ = entry
    if written.rstrip(b"\0") != name.encode():
        raise ExecutableError(f"header: section {name} is missing")
    if start % ALIGNMENT or start + length > data.size:
        raise ExecutableError(
            f"section {name}: {length} bytes at {start} are not in a file of {data.size} bytes"
        )
    content = data[start : start + length]
    if zlib.crc32(content.data) != crc:
        raise ExecutableError(f"section {name}: the checksum does not match")
    return name, content
