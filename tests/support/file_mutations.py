"""Damage to saved executables: of arbitrary bytes, and by the format."""

import json
import struct
import zlib
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

from relax_egraph.vm.bytecode import Call, Goto, If, Instruction, Kind, Operand, Ret, encode
from relax_egraph.vm.executable import Executable
from relax_egraph.vm.sections import SECTIONS
from tests.support.sectioned import assembled, contents_of

HEADER, ENTRY = 16, 40
TABLES = ("functions", "callees", "origins", "constants", "kernels", "work", "metadata")

NUMBERS = (-(1 << 63), -1, 0, 1, 2, 3, 7, 64, 1 << 20, 1 << 31, 1 << 60, 1 << 62, 1 << 63, 1 << 70)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0.5, -0.0, 1e308, "", "main", "\0", "ü", "float32", "object", "x" * 3000),
    *([], {}, [[]], [0], {"a": "b"}, ["tensor", "int8", [1 << 40], 0], ["shape", [-1]]),
    *(
        ["int", 1 << 62],
        ["str", "@0"],
        ["dtype", "float64"],
        ["float", "nan"],
        ["float", "0x1p9999"],
    ),
    *("@0", "@99", "1 // @0", "@0 * 4611686018427387904", "-@0", "min(@0", "(" * 900, "9" * 6000),
    *(
        "n -> @0",
        "n -> @99",
        "n == @1",
        "_",
        "-3",
        "@0 ** @0",
        "__import__('os')",
        "vm.builtin.copy",
    ),
    *NUMBERS,
)
RAW = (
    *(b"NaN", b"-Infinity", b'"\\ud800"', b"[" * 5000, b'{"a":1,"a":2}', b"9" * 5000, b"1e400"),
    *(b"", b"\xff\xfe", b"nul", b'"', b"{}", b"[]", b"\xef\xbb\xbf[]", b"0x10", b"+1", b"01"),
)


def mutated(original: bytes, seed: int) -> tuple[str, bytes]:
    """`original` with a damage chosen by `seed`, and the name of its kind."""
    random = Random(seed)
    kinds = list(KINDS)
    name = random.choices(kinds, [KINDS[k][0] for k in kinds])[0]
    return name, KINDS[name][1](random, original)


# --- any bytes ------------------------------------------------------------------------


def _flipped(random: Random, data: bytes) -> bytes:
    damaged = bytearray(data)
    for _ in range(random.choice([1, 1, 1, 2, 4, 16])):
        damaged[random.randrange(len(damaged))] ^= 1 << random.randrange(8)
    return bytes(damaged)


def _cut(random: Random, data: bytes) -> bytes:
    place = random.randrange(len(data))
    return random.choice([data[:place], data[place:], data + data[:place], data[: place & -64]])


def _header(random: Random, data: bytes) -> bytes:
    """A wrong version, or absurd offsets and lengths, with the right checksum."""
    size = HEADER + ENTRY * len(SECTIONS)
    table = bytearray(data[:size])
    match random.randrange(4):
        case 0:
            struct.pack_into("<I", table, 8, random.choice([0, 1, 3, 1 << 31, (1 << 32) - 1]))
        case 1:
            struct.pack_into("<I", table, 12, random.choice([0, 1, 10, 12, (1 << 32) - 1]))
        case 2:
            at = HEADER + ENTRY * random.randrange(len(SECTIONS)) + random.choice([16, 24])
            (value,) = struct.unpack_from("<Q", table, at)
            new = random.choice([value + 64, value - 1, value + 1, *NUMBERS]) % (1 << 64)
            struct.pack_into("<Q", table, at, new)
        case _:
            first, second = (HEADER + ENTRY * k for k in random.sample(range(len(SECTIONS)), 2))
            one, other = table[first : first + ENTRY], table[second : second + ENTRY]
            table[first : first + ENTRY], table[second : second + ENTRY] = other, one
    return bytes(table) + struct.pack("<II", zlib.crc32(table), 0) + data[size + 8 :]


# --- within sections, with checksums that match ---------------------------------------


def _bytes(random: Random, data: bytes) -> bytes:
    contents = contents_of(data)
    name = random.choice([n for n in SECTIONS if contents[n]])
    contents[name] = random.choice([_flipped, _flipped, _flipped, _cut])(random, contents[name])
    return assembled(contents)


def _exchanged(random: Random, data: bytes) -> bytes:
    contents = contents_of(data)
    a, b = random.sample(SECTIONS, 2)
    contents[a], contents[b] = contents[b], contents[a]
    return assembled(contents)


def _table(random: Random, data: bytes) -> bytes:
    contents = contents_of(data)
    name = random.choice(TABLES)
    contents[name] = _other_json(random, contents[name])
    return assembled(contents)


def _other_json(random: Random, written: bytes) -> bytes:
    if random.random() < 0.1:
        return random.choice(RAW)
    value = json.loads(written)
    for _ in range(random.choice([1, 1, 2])):
        value = _other_value(random, value)
    text = json.dumps(value).encode()
    if random.random() < 0.1:
        place = random.randrange(len(text) + 1)
        return text[:place] + random.choice(RAW) + text[place + random.randrange(3) :]
    return text


def _other_value(random: Random, value: Any) -> Any:
    """`value` with something within it replaced, removed, repeated or exchanged."""
    items: Any = list(value.items()) if isinstance(value, dict) else value
    if not isinstance(items, list) or not items or random.random() < 0.05:
        if isinstance(value, int) and random.random() < 0.5:
            return value + random.choice([-64, -8, -1, 1, 8, 64])
        if isinstance(value, str) and value and random.random() < 0.3:
            place = random.randrange(len(value))
            return value[:place] + random.choice("@0n->*(,\0\ud800é") + value[place + 1 :]
        return random.choice(VALUES)
    items = list(items)
    place, other = random.randrange(len(items)), random.randrange(len(items))
    match random.choices(range(5), [12, 1, 1, 1, 1])[0]:
        case 0 if isinstance(value, dict):
            key, item = items[place]
            items[place] = (key, _other_value(random, item))
        case 0:
            items[place] = _other_value(random, items[place])
        case 1:
            del items[place]
        case 2:
            items.insert(other, items[place])
        case 3:
            items[place], items[other] = items[other], items[place]
        case _ if isinstance(value, dict):
            items[place] = (str(random.choice(VALUES)), items[place][1])
        case _:
            items[place] = random.choice(VALUES)
    return dict(items) if isinstance(value, dict) else items


def _words(random: Random, data: bytes) -> bytes:
    contents = contents_of(data)
    name = random.choice(["code", "code", "code", "offsets"])
    words = np.frombuffer(contents[name], "<i8").astype(object)
    for _ in range(random.choice([1, 1, 2])):
        place = random.randrange(len(words))
        other = [int(words[place]) + step for step in (-8, -1, 1, 8)]
        other += [int(words[random.randrange(len(words))]), random.getrandbits(63), *NUMBERS]
        words[place] = (random.choice(other) + (1 << 63)) % (1 << 64) - (1 << 63)
    contents[name] = words.astype("<i8").tobytes()
    return assembled(contents)


# --- other programs -------------------------------------------------------------------


def _instructions(random: Random, data: bytes) -> bytes:
    """Instructions that are mostly well-formed and mean something else."""
    from relax_egraph.vm.binary import from_bytes

    executable = from_bytes(data)
    functions = [executable.instructions(f) for f in executable.functions]
    contents = contents_of(data)
    written = json.loads(contents["functions"])
    chosen = random.randrange(len(functions))
    for _ in range(random.choice([1, 1, 2, 3])):
        _edit(random, functions[chosen], executable, written[chosen][2])
    words: list[int] = []
    offsets: list[int] = []
    for function, item in zip(functions, written, strict=True):
        item[3] = len(offsets)
        for instruction in function:
            offsets.append(len(words))
            words += encode(instruction)
        item[4] = len(offsets)
    contents["functions"] = json.dumps(written).encode()
    contents["code"] = np.array(words, "<i8").tobytes()
    contents["offsets"] = np.array(offsets, "<i8").tobytes()
    contents["origins"] = b"[]"
    return assembled(contents)


def _edit(random: Random, code: list[Instruction], executable: Executable, registers: int) -> None:
    place = random.randrange(len(code))

    def operand() -> Operand:
        kind = random.choice([*[Kind.REGISTER] * 5, *Kind])
        many = {Kind.REGISTER: registers, Kind.CONSTANT: len(executable.constants)}
        many[Kind.FUNCTION] = len(executable.callees)
        if kind is Kind.IMMEDIATE:
            small = [n for n in NUMBERS if -(1 << 60) <= n < 1 << 60]
            return Operand(kind, random.choice(small))
        return Operand(kind, random.randrange(max(1, many.get(kind, 1))))

    match random.randrange(8), code[place]:
        case 0, _:
            del code[place]
        case 1, _:
            code.insert(random.randrange(len(code)), code[place])
        case 2, Call(args=args, dst=dst):
            code[place] = Call(random.randrange(len(executable.callees)), args, dst)
        case 3, Call(callee, args, _):
            code[place] = Call(callee, args, Operand(Kind.REGISTER, random.randrange(registers)))
        case 4, Call(callee, args, dst):
            extra = (*args, operand()) if random.random() < 0.5 else args[:-1]
            code[place] = Call(callee, extra, dst)
        case _, Call(callee, args, dst) if args:
            k = random.randrange(len(args))
            code[place] = Call(callee, (*args[:k], operand(), *args[k + 1 :]), dst)
        case 5, _:
            code.insert(place, Goto(random.randint(-3, 5)))
        case 6, _:
            code.insert(place, If(operand(), random.randint(-3, 5)))
        case _, Ret():
            code[place] = Ret(operand())
        case _:
            other = random.randrange(len(code))
            code[place], code[other] = code[other], code[place]


# --- kernels --------------------------------------------------------------------------


def _objects(random: Random, data: bytes) -> bytes:
    """Another head of a kernel set, or another object, with its size in the head."""
    contents = contents_of(data)
    table = json.loads(contents["kernels"])
    parts: list[bytes] = []
    at = 0
    for size in table["sizes"]:
        parts.append(contents["objects"][at : at + size])
        at += size
    if not parts:
        return _table(random, data)
    heads = {item[2][0] for item in table["sets"]}
    place = random.randrange(len(parts))
    if place in heads:
        parts[place] = _other_json(random, parts[place])
    elif parts[place].startswith(b"\x7fELF") and random.random() < 0.9:
        parts[place] = _other_object(random, parts[place])
    else:
        garbage = [b"", b"\x7fELF", random.randbytes(500), b"\x7fELF" + random.randbytes(900)]
        other = [_flipped(random, parts[place]), parts[random.randrange(len(parts))]]
        parts[place] = random.choice([*garbage, *other])
    table["sizes"] = [len(part) for part in parts]
    contents["kernels"] = json.dumps(table).encode()
    contents["objects"] = b"".join(parts)
    if random.random() < 0.7:
        return assembled(contents)
    return assembled(_sizes_in_heads(contents, table, parts))


def _sizes_in_heads(contents: dict[str, bytes], table: Any, parts: list[bytes]) -> dict[str, bytes]:
    """Heads with the sizes of the objects, if they can be parsed at all."""
    for _, _, (head, *objects) in table["sets"]:
        try:
            written = json.loads(parts[head])
            for item, place in zip(written["objects"], objects, strict=True):
                item[1] = len(parts[place])
            parts[head] = json.dumps(written).encode()
        except (ValueError, TypeError, KeyError, IndexError, RecursionError):
            continue
    table["sizes"] = [len(part) for part in parts]
    return {
        **contents,
        "kernels": json.dumps(table).encode(),
        "objects": b"".join(parts),
    }


def _other_object(random: Random, data: bytes) -> bytes:
    """An ELF object with other bytes in its header, sections, symbols or relocations."""
    damaged = bytearray(data)
    (start,) = struct.unpack_from("<Q", data, 40)
    (count,) = struct.unpack_from("<H", data, 60)
    spans = [(0, 64), (start, start + 64 * count)]
    for k in range(count):
        kind, *_ = struct.unpack_from("<I", data, start + 64 * k + 4)
        offset, size = struct.unpack_from("<QQ", data, start + 64 * k + 24)
        if kind in (2, 3, 4) and size:
            spans.append((offset, offset + size))
    for _ in range(random.choice([1, 1, 2, 3])):
        low, high = random.choice(spans)
        place = random.randrange(low, min(high, len(data)))
        other = [damaged[place] ^ 1 << random.randrange(8), random.randrange(256), 0, 255]
        damaged[place] = random.choice(other)
    return bytes(damaged)


Damage = Callable[[Random, bytes], bytes]

KINDS: dict[str, tuple[int, Damage]] = {
    "flipped bits": (4, _flipped),
    "cut": (2, _cut),
    "header": (2, _header),
    "bytes": (3, _bytes),
    "exchanged": (1, _exchanged),
    "table": (10, _table),
    "words": (6, _words),
    "instructions": (10, _instructions),
    "objects": (8, _objects),
}
"""Kinds of damage with their frequency and function."""
