"""Reading of ELF objects, those of Linux, in the form that LLVM writes for kernels.

They have read-only sections, symbols within them, and a few kinds of relocations.
"""

import re
import struct
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from relax_egraph.lower.jit.object_symbols import ObjectSymbols, need

_IDENT = b"\x7fELF\x02\x01\x01" + bytes(9)
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QIIq")

_MACHINES = {"x86_64": 62, "aarch64": 183}
_WIDTHS = {
    "x86_64": {2: 4, 4: 4},
    "aarch64": dict.fromkeys((274, 275, 277, 278, 282, 283, 284, 285, 286, 299, 311, 312), 4),
}
"""The known relocations, and the number of bytes that each changes: relative ones of 32 bits; on
AArch64 those in an instruction."""

_PROGBITS, _SYMTAB, _STRTAB, _RELA = 1, 2, 3, 4
_UNDEFINED, _ABSOLUTE = 0, 0xFFF1
_NOTYPE, _FUNC, _FILE = 0, 2, 4
_KINDS = {
    _PROGBITS: re.compile(r"\.text|\.rodata(\.cst\d+)?|\.note\.GNU-stack"),
    _SYMTAB: re.compile(r"\.symtab"),
    _STRTAB: re.compile(r"\.strtab"),
    _RELA: re.compile(r"\.rela\.(text|rodata)"),
}
_FLAGS = {".text": {6}, ".note.GNU-stack": {0}, ".symtab": {0}, ".strtab": {0}, ".rela": {0x40}}
_READ_ONLY = {0x2, 0x12}
_MOST_SECTIONS, _MOST_ALIGNED, _FAR = 64, 4096, 1 << 31
_NAME = re.compile(r"[A-Za-z0-9_.$-]*")


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry: int


class _Symbol(NamedTuple):
    name: int
    info: int
    other: int
    section: int
    value: int
    size: int

    @property
    def is_global(self) -> bool:
        return self.info >> 4 == 1


def symbols_of(data: bytes, architecture: str) -> ObjectSymbols:
    """The symbols of the object `data`; raises `Fault` or ``struct.error`` if it is damaged."""
    sections, name_of = _sections(data, architecture)
    symtabs = [k for k, s in enumerate(sections) if s.kind == _SYMTAB]
    need(len(symtabs) == 1, "needs one table of symbols")
    table = sections[symtabs[0]]
    content = data[table.offset : table.offset + table.size]
    symbols = [_Symbol(*fields) for fields in _SYMBOL.iter_unpack(content)]
    need(sections[table.link].kind == _STRTAB, "symbols: no table of names")
    need(1 <= table.info <= len(symbols) and not any(symbols[0]), "symbols: the first ones")
    defined: list[str] = []
    needed: set[str] = set()
    for number, symbol in enumerate(symbols[1:], start=1):
        name = name_of(symbol.name)
        _check_symbol(symbol, name, sections)
        need(symbol.is_global == (number >= table.info), f"symbol {name}: in the wrong place")
        if symbol.section == _UNDEFINED:
            needed.add(name)
        elif symbol.is_global:
            defined.append(name)
    need(len(set(defined)) == len(defined), "a symbol is defined twice")
    for section in sections:
        if section.kind == _RELA:
            _check_relocations(data, section, sections, symbols, symtabs[0], architecture)
    return ObjectSymbols(frozenset(defined), frozenset(needed))


def _sections(data: bytes, architecture: str) -> tuple[list[_Section], Callable[[int], str]]:
    """The section headers, and the function from name offsets to names."""
    ident, kind, machine, version, entry, programs, start, flags, *rest = _HEADER.unpack_from(data)
    header_size, program_size, num_programs, section_size, count, names = rest
    form = (ident, kind, machine, version, entry, programs, flags, header_size, program_size)
    needed = (_IDENT, 1, _MACHINES[architecture], 1, 0, 0, 0, _HEADER.size, 0)
    need(form == needed and num_programs == 0, f"no ELF object for {architecture}")
    need(section_size == _SECTION.size and 2 <= count <= _MOST_SECTIONS, "the section table")
    need(start % 8 == 0 and start + count * _SECTION.size <= len(data), "the section table")
    table = data[start : start + count * _SECTION.size]
    sections = [_Section(*fields) for fields in _SECTION.iter_unpack(table)]
    need(not any(sections[0]) and names < count, "the section table")
    for number, section in enumerate(sections):
        place = section.address == 0 and section.offset + section.size <= len(data)
        need(place and section.link < count, f"section {number}: its place")
        if number:
            power = section.alignment.bit_count() == 1
            need(power and section.alignment <= _MOST_ALIGNED, f"section {number}: its alignment")
    strtab = sections[names]
    text = data[strtab.offset : strtab.offset + strtab.size]
    need(strtab.kind == _STRTAB and text[:1] == text[-1:] == b"\0", "the table of names")
    need(sum(s.kind == _STRTAB for s in sections) == 1, "needs one table of names")

    def name_of(place: int) -> str:
        need(place < len(text), "a name outside of their table")
        name = text[place : text.index(b"\0", place)].decode("latin-1")
        need(bool(_NAME.fullmatch(name)) or name == "<string>", f"the name {name!r}")
        return name

    for section in sections[1:]:
        _check_section(section, name_of(section.name))
    return sections, name_of


def _check_section(section: _Section, name: str) -> None:
    need(section.kind in _KINDS and bool(_KINDS[section.kind].fullmatch(name)), f"section {name}")
    key = ".rela" if section.kind == _RELA else name
    need(section.flags in _FLAGS.get(key, _READ_ONLY), f"section {name}: its flags")
    has_entries = section.kind in (_SYMTAB, _RELA)
    if has_entries or section.flags == 0x12:
        entry = section.entry
        fits = entry == 24 if has_entries else 1 <= entry <= 64
        need(fits and section.size % entry == 0, f"section {name}: its entries")
    else:
        need(section.entry == 0, f"section {name}: its entries")
        need(has_entries or section.link == 0 == section.info, f"section {name}: its links")
    need(name != ".note.GNU-stack" or section.size == 0, f"section {name}: its size")


def _check_symbol(symbol: _Symbol, name: str, sections: Sequence[_Section]) -> None:
    kind, what = symbol.info & 15, f"symbol {name}"
    need(symbol.info >> 4 <= 1 and symbol.other == 0, f"{what}: its binding")
    if symbol.section == _UNDEFINED:
        right = symbol.is_global and kind == _NOTYPE and bool(name)
        need(right and symbol.value == symbol.size == 0, f"{what}: not defined")
    elif symbol.section == _ABSOLUTE:
        need(kind == _FILE and symbol.value == symbol.size == 0, f"{what}: absolute")
    else:
        need(symbol.section < len(sections) and kind != _FILE, f"{what}: its section")
        section = sections[symbol.section]
        need(section.kind == _PROGBITS and section.flags != 0, f"{what}: its section")
        need(symbol.value + symbol.size <= section.size, f"{what}: its place")
        need(kind in (_NOTYPE, 1, _FUNC, 3), f"{what}: its kind")
        need(not symbol.is_global or (kind == _FUNC and bool(name)), f"{what}: its kind")


def _check_relocations(
    data: bytes,
    section: _Section,
    sections: Sequence[_Section],
    symbols: Sequence[_Symbol],
    symtab: int,
    architecture: str,
) -> None:
    need(section.link == symtab and section.info < len(sections), "relocations: their links")
    target = sections[section.info]
    need(target.kind == _PROGBITS and target.flags != 0, "relocations: their section")
    widths = _WIDTHS[architecture]
    content = data[section.offset : section.offset + section.size]
    ends: list[tuple[int, int]] = []
    for place, kind, symbol, addend in _RELOCATION.iter_unpack(content):
        need(kind in widths, f"a relocation of kind {kind}")
        need(place + widths[kind] <= target.size, "a relocation outside of its section")
        need(0 < symbol < len(symbols), "a relocation to no symbol")
        need(symbols[symbol].section != _ABSOLUTE, "a relocation to no symbol")
        need(-_FAR <= addend < _FAR, "a relocation too far")
        ends.append((place, place + widths[kind]))
    need(all(a[1] <= b[0] for a, b in pairwise(sorted(ends))), "relocations that overlap")
