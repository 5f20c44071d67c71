"""Executables with kernels for other systems: macOS and Windows."""

import re
import struct
from collections.abc import Callable
from functools import cache

import pytest

import relax_egraph as rx
from relax_egraph.errors import ExecutableError
from relax_egraph.lower.emit.target import this_system
from relax_egraph.lower.jit.kernel_sets import compiled_kernels, fitting_kernels, head_of
from relax_egraph.lower.jit.objects import symbols_of
from relax_egraph.lower.jit.processors import processor
from relax_egraph.lower.runtime.workspace import WORKSPACE_SYMBOLS
from relax_egraph.vm import KernelSet
from tests.vm.test_file_targets import OTHERS

pytestmark = pytest.mark.skipif(this_system() != "linux", reason="the other systems are others")

SYSTEMS = ("darwin-aarch64:apple-m1", "darwin-x86_64", "win32-x86_64:x86-64-v3", "win32-aarch64")
MAC = SYSTEMS[0]


@cache
def built() -> tuple[KernelSet, ...]:
    return rx.build(rx.parse(OTHERS), SYSTEMS).kernels


def of(name: str) -> KernelSet:
    return built()[SYSTEMS.index(name)]


@pytest.mark.parametrize("name", SYSTEMS)
def test_objects_are_in_the_format_of_the_system(name: str) -> None:
    compiled = compiled_kernels(of(name))

    assert head_of(of(name)).target == compiled.target == processor(name)
    for symbol, data in compiled.objects.items():
        found = symbols_of(data, processor(name))
        assert found.defined == {symbol}
        assert found.needed <= {"sin", "floorf"} | WORKSPACE_SYMBOLS


def test_kernels_of_other_systems_are_not_run() -> None:
    every = "; ".join(
        f"{processor(name).cpu} needs {processor(name).system} on {processor(name).architecture}"
        for name in SYSTEMS
    )

    with pytest.raises(ExecutableError, match=re.escape(every)):
        fitting_kernels(built())


def test_a_system_without_code_is_refused() -> None:
    message = "target 'plan9-x86_64': no code for 'plan9', only for linux, darwin, win32"

    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        processor("plan9-x86_64")


# --- damaged objects of macOS ----------------------------------------------------------

SEGMENT, SECTION, COMMAND_SIZES = 32, 32 + 72, 32 + 4


@cache
def object_() -> bytes:
    """An object with a relocation."""
    return max(compiled_kernels(of(MAC)).objects.values(), key=len)


def put(form: str, place: int, value: int) -> Callable[[], bytes]:
    def damaged() -> bytes:
        data = bytearray(object_())
        struct.pack_into(f"<{form}", data, place, value)
        return bytes(data)

    return damaged


def of_table(form: str, command_offset: int, place: int, value: int) -> Callable[[], bytes]:
    """Damage at `place` of the table at the offset that stands at `command_offset`."""

    def damaged() -> bytes:
        (start,) = struct.unpack_from("<I", object_(), command_offset)
        return put(form, start + place, value)()

    return damaged


def symtab(offset: int) -> int:
    """The place of a field of the command of symbols."""
    data, place = object_(), 32
    while struct.unpack_from("<I", data, place)[0] != 2:
        place += struct.unpack_from("<I", data, place + 4)[0]
    return place + offset


DAMAGES: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "garbage": lambda: b"garbage" * 100,
    "cut": lambda: object_()[:-1],
    "32 bits": put("I", 0, 0xFEEDFACE),
    "x86-64": put("I", 4, 0x01000007),
    "executable": put("I", 12, 2),
    "many commands": put("I", 16, 60000),
    "commands outside": put("I", 20, 1 << 30),
    "endless command": put("I", COMMAND_SIZES, 0),
    "unknown command": put("I", SEGMENT, 0x77),
    "segment outside": put("Q", SEGMENT + 40, 1 << 40),
    "section outside": put("Q", SECTION + 40, 1 << 40),
    "huge alignment": put("I", SECTION + 52, 40),
    "relocations outside": put("I", SECTION + 56, 1 << 30),
    "section of data": put("B", SECTION + 2, ord("x")),
    "symbols outside": lambda: put("I", symtab(8), 1 << 30)(),
    "no terminator": lambda: put("I", symtab(20), 5)(),
    "symbol name outside": lambda: of_table("I", symtab(8), 0, 1 << 30)(),
    "symbol of debugging": lambda: of_table("B", symtab(8), 4, 0x24)(),
    "symbol of no section": lambda: of_table("B", symtab(8), 5, 200)(),
    "symbol beyond its section": lambda: of_table("Q", symtab(8), 8, 1 << 40)(),
    "relocation outside": of_table("I", SECTION + 56, 0, 1 << 30),
    "relocation of another kind": of_table("B", SECTION + 56, 7, 0xFF),
    "relocation to no symbol": of_table("H", SECTION + 56, 4, 0xFFFF),
}


def test_what_llvm_writes_is_let_through() -> None:
    assert symbols_of(object_(), processor(MAC)).needed == {"sin"}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_object_is_refused(damage: str) -> None:
    data = DAMAGES[damage]()

    with pytest.raises(ExecutableError, match=r"^section objects: an object file is damaged: "):
        symbols_of(data, processor(MAC))
