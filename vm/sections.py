"""The container format of the file: checksummed sections in a fixed order.

    magic (8) · version (u32) · number of sections (u32)
    for each section: name (16) · offset (u64) · length (u64) · crc32 (u32) · zero (u32)
    crc32 of all of the above (u32) · zero (u32)
    the sections, each aligned to 64 bytes, with zeros between

All numbers are little-endian.  The lengths of the sections determine their offsets, so every byte
of a file is accounted for.
"""

import struct
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeAlias

from relax_egraph.errors import ExecutableError
from relax_egraph.vm.storage import ALIGNMENT, Bytes

MAGIC = b"\x89RXE\r\n\x1a\n"
VERSION = 2

SECTIONS = (
    *("functions", "callees", "code", "offsets", "origins", "constants", "tensors"),
    *("kernels", "objects", "work", "metadata"),
)

Sections: TypeAlias = Mapping[str, Bytes]
Contents: TypeAlias = Mapping[str, Sequence[bytes | memoryview]]

_HEAD = struct.Struct("<8sII")
_ENTRY = struct.Struct("<16sQQII")
_CHECKSUM = struct.Struct("<II")
_HEADER_SIZE = _HEAD.size + len(SECTIONS) * _ENTRY.size + _CHECKSUM.size


def round_up(size: int) -> int:
    """`size`, rounded up to the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def chunks(contents: Contents) -> Iterator[bytes | memoryview]:
    """The bytes of a file with these contents of `SECTIONS`."""
    lengths = [sum(map(len, contents[name])) for name in SECTIONS]
    entries: list[bytes] = []
    for name, start, length in zip(SECTIONS, _places(lengths), lengths, strict=True):
        checksum = 0
        for part in contents[name]:
            checksum = zlib.crc32(part, checksum)
        entries.append(_ENTRY.pack(name.encode(), start, length, checksum, 0))
    header = _HEAD.pack(MAGIC, VERSION, len(SECTIONS)) + b"".join(entries)
    yield header
    yield _CHECKSUM.pack(zlib.crc32(header), 0)
    end = _HEADER_SIZE
    for name, length in zip(SECTIONS, lengths, strict=True):
        yield bytes(round_up(end) - end)
        yield from contents[name]
        end = round_up(end) + length


def read_sections(data: Bytes, names: Collection[str] = SECTIONS) -> Sections:
    """The contents of the sections `names`, in place.

    Raises `ExecutableError` unless magic, version, offsets, lengths and the checksums of these
    sections are right, and there are no other bytes.
    """
    entries = _entries(data)
    sections: dict[str, Bytes] = {}
    end = _HEADER_SIZE
    places = _places([length for _, _, length, _, _ in entries])
    for name, needed, entry in zip(SECTIONS, places, entries, strict=True):
        written, start, length, checksum, zero = entry
        if written != _ENTRY.pack(name.encode(), 0, 0, 0, 0)[:16] or zero:
            raise ExecutableError(f"header: section {name} is missing")
        if start != needed:
            raise ExecutableError(f"section {name}: begins at byte {start}, needs {needed}")
        if start + length > data.size:
            raise ExecutableError(
                f"section {name}: {length} bytes at {start} are not in a file of {data.size} bytes"
            )
        if name in names:
            content = data[start : start + length]
            if zlib.crc32(content.data) != checksum:
                raise ExecutableError(f"section {name}: the checksum does not match")
            if data[end:start].any():
                raise ExecutableError(f"section {name}: something lies before it, needs zeros")
            sections[name] = content
        end = start + length
    if end != data.size:
        raise ExecutableError(f"header: {data.size - end} bytes lie behind the last section")
    return sections


def _entries(data: Bytes) -> Sequence[tuple[bytes, int, int, int, int]]:
    if bytes(data[: len(MAGIC)]) != MAGIC:
        raise ExecutableError("header: this is no executable of relax-egraph")
    if data.size >= _HEAD.size:
        _, version, count = _HEAD.unpack_from(bytes(data[: _HEAD.size]))
        _check_version(version)
        if count != len(SECTIONS):
            raise ExecutableError(f"header: {count} sections, needs {len(SECTIONS)}")
    if data.size < _HEADER_SIZE:
        raise ExecutableError(f"header: cut off after {data.size} of {_HEADER_SIZE} bytes")
    raw = bytes(data[:_HEADER_SIZE])
    table = raw[: -_CHECKSUM.size]
    if _CHECKSUM.unpack_from(raw, len(table)) != (zlib.crc32(table), 0):
        raise ExecutableError("header: the checksum does not match")
    return list(_ENTRY.iter_unpack(table[_HEAD.size :]))


def _check_version(version: int) -> None:
    if version == VERSION:
        return
    what = f"header: version {version} of the format, this program reads version {VERSION}: "
    if version > VERSION:
        raise ExecutableError(f"{what}it needs a newer relax-egraph")
    raise ExecutableError(f"{what}build the module again")


def _places(lengths: Sequence[int]) -> Iterator[int]:
    end = _HEADER_SIZE
    for length in lengths:
        yield round_up(end)
        end = round_up(end) + length
