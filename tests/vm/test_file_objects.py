"""Object files that are not as LLVM writes them: its linker, which some would end, gets none."""

import struct
from collections.abc import Callable
from functools import cache

import pytest

from relax_egraph.errors import ExecutableError
from relax_egraph.lower.emit.target import host, this_architecture
from relax_egraph.lower.jit import compile_kernels
from relax_egraph.lower.jit.compiled import CompiledKernels, KernelInfo
from relax_egraph.lower.jit.kernel_sets import compiled_kernels, kernel_set
from relax_egraph.lower.jit.linking import link
from relax_egraph.lower.jit.machine_code import compiled_object
from relax_egraph.lower.jit.object_symbols import ObjectSymbols
from relax_egraph.lower.jit.objects import symbols_of
from relax_egraph.tir.expr import Intrinsic, TirVar
from relax_egraph.tir.stmt import PrimFunc, Store
from tests.support.kernels import buffer, loop, n

pytestmark = pytest.mark.skipif(
    this_architecture() != "x86_64", reason="objects of x86-64, with their relocations"
)

SECTION_TABLE, COUNT, NAMES = 40, 60, 62
TEXT, RODATA, RELA, SYMTAB, STRTAB = ".text", ".rodata", ".rela.text", ".symtab", ".strtab"
NAME, KIND, FLAGS, ADDRESS, OFFSET, SIZE, LINK, INFO, ALIGNMENT, ENTRY = (
    0,
    4,
    8,
    16,
    24,
    32,
    40,
    44,
    48,
    56,
)


@cache
def kernel() -> tuple[str, bytes]:
    """A kernel with constants and a call: its symbol and its object."""
    i, x, out = TirVar("i"), buffer("x", "float32", n), buffer("out", "float32", n)
    function = PrimFunc((x, out), loop(i, n, Store(out, (i,), Intrinsic("tan", (x[i],)))))
    compiled = compile_kernels({"f": function})
    ((symbol, data),) = compiled.objects.items()
    return symbol, data


def section(data: bytes, name: str) -> int:
    """Where the entry of the section begins whose name begins so."""
    (start,) = struct.unpack_from("<Q", data, SECTION_TABLE)
    count, names = struct.unpack_from("<HH", data, COUNT)
    (strings,) = struct.unpack_from("<Q", data, start + 64 * names + OFFSET)
    for k in range(count):
        (at,) = struct.unpack_from("<I", data, start + 64 * k)
        if data[strings + at :].startswith(name.encode()):
            return start + 64 * k
    raise AssertionError(f"no section {name}")


def content(data: bytes, name: str) -> int:
    """Where the section begins."""
    return struct.unpack_from("<Q", data, section(data, name) + OFFSET)[0]


def put(form: str, place: int, value: int) -> bytes:
    """The object with `value` at `place`."""
    changed = bytearray(kernel()[1])
    struct.pack_into(f"<{form}", changed, place, value)
    return bytes(changed)


def of_section(name: str, form: str, field: int, value: int) -> Callable[[], bytes]:
    return lambda: put(form, section(kernel()[1], name) + field, value)


def of_content(name: str, form: str, place: int, value: int) -> Callable[[], bytes]:
    return lambda: put(form, content(kernel()[1], name) + place, value)


DAMAGES: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "garbage": lambda: b"garbage" * 100,
    "cut": lambda: kernel()[1][:-1],
    "32 bits": lambda: put("B", 4, 1),
    "executable": lambda: put("H", 16, 2),
    "aarch64": lambda: put("H", 18, 183),
    "section table outside": lambda: put("Q", SECTION_TABLE, 1 << 40),
    "no sections": lambda: put("H", COUNT, 0),
    "too many sections": lambda: put("H", COUNT, 60000),
    "no names": lambda: put("H", NAMES, 99),
    "name outside": of_section(TEXT, "I", NAME, 99999),
    "thread storage": of_section(TEXT, "I", KIND, 8),
    "writable code": of_section(TEXT, "Q", FLAGS, 7),
    "address": of_section(TEXT, "Q", ADDRESS, 64),
    "section outside": of_section(TEXT, "Q", OFFSET, 1 << 63),
    "section too long": of_section(RODATA, "Q", SIZE, 1 << 63),
    "link outside": of_section(SYMTAB, "I", LINK, 77),
    "alignment 0": of_section(RODATA, "Q", ALIGNMENT, 0),
    "alignment 3": of_section(TEXT, "Q", ALIGNMENT, 3),
    "huge alignment": of_section(TEXT, "Q", ALIGNMENT, 1 << 62),
    "half a symbol": of_section(SYMTAB, "Q", SIZE, 25),
    "entries of 0": of_section(SYMTAB, "Q", ENTRY, 0),
    "no local symbols": of_section(SYMTAB, "I", INFO, 0),
    "all symbols local": of_section(SYMTAB, "I", INFO, 1 << 20),
    "no terminator": lambda: put("B", content(kernel()[1], STRTAB) + _size(STRTAB) - 1, ord("x")),
    "symbol name outside": of_content(SYMTAB, "I", 24, 1 << 31),
    "weak symbol": of_content(SYMTAB, "B", 24 + 4, 0x22),
    "hidden symbol": of_content(SYMTAB, "B", 24 + 5, 2),
    "symbol of no section": of_content(SYMTAB, "H", 48 + 6, 50),
    "symbol beyond its section": of_content(SYMTAB, "Q", 48 + 8, 1 << 40),
    "relocation outside": of_content(RELA, "Q", 0, 1 << 32),
    "relocation of another kind": of_content(RELA, "I", 8, 19),
    "relocation to no symbol": of_content(RELA, "I", 12, 4000),
    "relocation to nothing": of_content(RELA, "I", 12, 0),
    "relocation too far": of_content(RELA, "q", 16, -(1 << 60)),
    "relocations of a table": of_section(RELA, "I", INFO, 1),
}


def _size(name: str) -> int:
    data = kernel()[1]
    return struct.unpack_from("<Q", data, section(data, name) + SIZE)[0]


def test_what_llvm_writes_is_let_through() -> None:
    symbol, data = kernel()

    assert symbols_of(data, host()) == ObjectSymbols(frozenset({symbol}), frozenset({"tan"}))


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_object_is_refused(damage: str) -> None:
    data = DAMAGES[damage]()

    with pytest.raises(ExecutableError, match=r"^section objects: an object file is damaged: "):
        symbols_of(data, host())


def holding(*objects: tuple[str, bytes], symbol: str = "f") -> CompiledKernels:
    return CompiledKernels(
        host(), dict(objects), {"f": KernelInfo(symbol, ("float32", "float32"), 1, 1)}
    )


def object_of(text: str) -> bytes:
    return compiled_object(text, host())


def test_a_symbol_that_an_object_has_not_is_refused() -> None:
    written = kernel_set(holding(("f", object_of("define void @g() nounwind {\n  ret void\n}"))))

    with pytest.raises(ExecutableError) as error:
        compiled_kernels(written)

    message = (
        f"section kernels: kernels for {host().cpu!r}: the object f does not define its symbol"
    )
    assert str(error.value) == message


def test_a_symbol_that_is_nowhere_does_not_link() -> None:
    text = "declare void @nowhere_at_all()\n"
    text += "define void @f() nounwind {\n  call void @nowhere_at_all()\n  ret void\n}"

    with pytest.raises(ExecutableError) as error:
        compiled_kernels(kernel_set(holding(("f", object_of(text)))))

    message = f"section kernels: kernels for {host().cpu!r}: nowhere_at_all is not defined"
    assert str(error.value) == message


def test_a_symbol_that_is_there_twice_does_not_link() -> None:
    data = object_of("define void @f() {\n  ret void\n}")

    with pytest.raises(ExecutableError, match="kernels do not link: "):
        link(holding(("f", data), ("g", data)))
