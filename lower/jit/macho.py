"""Reading of Mach-O objects, those of macOS, in the form that LLVM writes for kernels.

They have one segment with code and constants, symbols, and a few kinds of relocations.  The names
of symbols begin with ``_``, which is none of the names' part.
"""

import re
import struct
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from relax_egraph.lower.jit.object_symbols import ObjectSymbols, need

_HEADER = struct.Struct("<IIIIIIII")
_COMMAND = struct.Struct("<II")
_SEGMENT = struct.Struct("<II16sQQQQIIII")
_SECTION = struct.Struct("<16s16sQQIIIIIIII")
_SYMTAB = struct.Struct("<IIIIII")
_SYMBOL = struct.Struct("<IBBHQ")
_RELOCATION = struct.Struct("<II")

_MAGIC, _OBJECT = 0xFEEDFACF, 1
_PROCESSORS = {"x86_64": (0x01000007, 3), "aarch64": (0x0100000C, 0)}
_KINDS = {"x86_64": {1, 2, 3}, "aarch64": {2, 3, 4, 5, 6}}
"""The known relocations: of x86-64 signed distances, branches, and loads of addresses; of AArch64
branches, pages and offsets within pages, and the same for loads of addresses.  Each changes 4
bytes."""

_SEGMENT_COMMAND, _SYMTAB_COMMAND = 0x19, 0x2
_OTHER_COMMANDS = {0xB: 80, 0x24: 16, 0x29: 16, 0x2E: 16, 0x32: 24}
"""Commands that say nothing that is needed, and their sizes: ranges, hints and versions."""

_SECTIONS = re.compile(rb"__TEXT,(__text|__const|__literal(4|8|16))|__DATA,__const")
_NAME = re.compile(r"(_|ltmp|l_?|L)[A-Za-z0-9_.$]*")
_EXTERNAL, _IN_SECTION, _UNDEFINED = 0x01, 0x0E, 0x00
_MOST_COMMANDS, _MOST_ALIGNED = 16, 12


class _Section(NamedTuple):
    section: bytes
    segment: bytes
    address: int
    size: int
    offset: int
    alignment: int
    relocations: int
    num_relocations: int
    flags: int
    first: int
    second: int
    third: int


class _Symbol(NamedTuple):
    name: int
    kind: int
    section: int
    description: int
    value: int


def symbols_of(data: bytes, architecture: str) -> ObjectSymbols:
    """The symbols of the object `data`; raises `Fault` or ``struct.error`` if it is damaged."""
    magic, *processor, kind, count, size, flags, reserved = _HEADER.unpack_from(data)
    form = (magic, tuple(processor), kind, reserved)
    right = form == (_MAGIC, _PROCESSORS[architecture], _OBJECT, 0)
    need(right and flags in (0, 0x2000), f"no Mach-O object for {architecture}")
    commands = list(_commands(data, count, size))
    segments = [place for kind, place in commands if kind == _SEGMENT_COMMAND]
    tables = [place for kind, place in commands if kind == _SYMTAB_COMMAND]
    need(len(segments) == 1 and len(tables) == 1, "needs one segment and one table of symbols")
    sections = _sections(data, segments[0])
    _, _, start, number, names, length = _SYMTAB.unpack_from(data, tables[0])
    need(start + number * _SYMBOL.size <= len(data), "the table of symbols")
    need(length > 0 and names + length <= len(data), "the table of names")
    text = data[names : names + length]
    need(text[-1:] == b"\0", "the table of names")
    content = data[start : start + number * _SYMBOL.size]
    symbols = [_Symbol(*fields) for fields in _SYMBOL.iter_unpack(content)]
    defined: list[str] = []
    needed: set[str] = set()
    for symbol in symbols:
        name = _checked_name(symbol, text, sections)
        if symbol.kind == _UNDEFINED | _EXTERNAL:
            needed.add(name)
        elif symbol.kind == _IN_SECTION | _EXTERNAL:
            defined.append(name)
    need(len(set(defined)) == len(defined), "a symbol is defined twice")
    for section in sections:
        _check_relocations(data, section, len(sections), len(symbols), architecture)
    return ObjectSymbols(frozenset(defined), frozenset(needed))


def _commands(data: bytes, count: int, size: int) -> Iterator[tuple[int, int]]:
    """The kind and the place of each load command."""
    need(count <= _MOST_COMMANDS, "the load commands")
    place, end = _HEADER.size, _HEADER.size + size
    for _ in range(count):
        kind, length = _COMMAND.unpack_from(data, place)
        known = kind in (_SEGMENT_COMMAND, _SYMTAB_COMMAND) or _OTHER_COMMANDS.get(kind) == length
        need(known, f"a load command of kind {kind}")
        need(length >= _COMMAND.size and length % 8 == 0, "a load command: its size")
        need(place + length <= end <= len(data), "a load command outside of their table")
        yield kind, place
        place += length
    need(place == end, "the load commands")


def _sections(data: bytes, place: int) -> list[_Section]:
    _, length, name, _, whole, offset, size, *_, count, flags = _SEGMENT.unpack_from(data, place)
    need(not any(name) and flags == 0, "the segment")
    need(length == _SEGMENT.size + count * _SECTION.size, "the table of sections")
    need(offset + size <= len(data) and size <= whole, "the segment: its place")
    table = data[place + _SEGMENT.size : place + length]
    sections = [_Section(*fields) for fields in _SECTION.iter_unpack(table)]
    for section in sections:
        name = section.segment.rstrip(b"\0") + b"," + section.section.rstrip(b"\0")
        need(bool(_SECTIONS.fullmatch(name)), f"section {name.decode('latin-1')}")
        need(section.alignment <= _MOST_ALIGNED, "a section: its alignment")
        need(section.first == section.second == section.third == 0, "a section: its fields")
        inside = offset <= section.offset and section.offset + section.size <= offset + size
        need(section.size == 0 or inside, "a section: its place")
        need(section.address + section.size <= whole, "a section: its address")
    places = sorted((s.address, s.address + s.size) for s in sections)
    need(all(a[1] <= b[0] for a, b in pairwise(places)), "sections that overlap")
    return sections


def _checked_name(symbol: _Symbol, text: bytes, sections: Sequence[_Section]) -> str:
    need(symbol.name < len(text), "a name outside of their table")
    name = text[symbol.name : text.index(b"\0", symbol.name)].decode("latin-1")
    need(bool(_NAME.fullmatch(name)), f"the name {name!r}")
    need(symbol.kind & ~_EXTERNAL in (_IN_SECTION, _UNDEFINED), f"symbol {name}: its kind")
    if symbol.kind & _IN_SECTION:
        need(1 <= symbol.section <= len(sections), f"symbol {name}: its section")
        section = sections[symbol.section - 1]
        inside = section.address <= symbol.value <= section.address + section.size
        need(inside, f"symbol {name}: its place")
    else:
        need(symbol.section == symbol.value == 0, f"symbol {name}: not defined")
    is_global = bool(symbol.kind & _EXTERNAL)
    need(not is_global or name.startswith("_"), f"symbol {name}: its name")
    need(symbol.description in (0, 0x20), f"symbol {name}: its description")
    return name[1:] if is_global else name


def _check_relocations(
    data: bytes, section: _Section, num_sections: int, num_symbols: int, architecture: str
) -> None:
    start, size = section.relocations, section.num_relocations * _RELOCATION.size
    need(start + size <= len(data), "relocations outside of the file")
    places: list[int] = []
    for place, word in _RELOCATION.iter_unpack(data[start : start + size]):
        number, is_external, kind = word & 0xFFFFFF, word >> 27 & 1, word >> 28
        need(kind in _KINDS[architecture], f"a relocation of kind {kind}")
        need(word >> 25 & 3 == 2 and place + 4 <= section.size, "a relocation: its place")
        known = number < num_symbols if is_external else 1 <= number <= num_sections
        need(known, "a relocation to no symbol")
        places.append(place)
    need(all(a + 4 <= b for a, b in pairwise(sorted(places))), "relocations that overlap")
