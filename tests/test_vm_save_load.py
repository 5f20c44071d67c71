"""Saved executables: the same after loading, and refused when they are damaged."""

import json
import os
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relax_egraph.errors import ExecutableError
from relax_egraph.ir.dtypes import DTYPES
from relax_egraph.vm import ExecBuilder, Executable, KernelSet, VirtualMachine
from relax_egraph.vm.binary import SECTIONS, from_bytes
from relax_egraph.vm.bytecode import IMMEDIATE_MAX, IMMEDIATE_MIN, Operand

HEADER, ENTRY = 16, 40


def example() -> Executable:
    ib = ExecBuilder()
    weight = np.arange(12, dtype=np.float32).reshape(3, 4)
    with ib.function("main", 1, ["x"], ['R.Tensor((n, 3), "float32")']):
        ib.emit_call("vm.builtin.alloc_shape_heap", [1], dst=ib.r(1))
        ib.emit_call(
            "vm.builtin.match_shape",
            [ib.r(0), ib.r(1), "main: parameter x", 'R.Tensor((n, 3), "float32")', "n -> @0", "3"],
        )
        ib.emit_call("test.matmul", [ib.r(0), weight], dst=ib.r(2))
        ib.emit_call("inner", [ib.r(2), 0.5, (2, 3), np.zeros(0, np.int8)], dst=ib.r(3))
        ib.emit_ret(ib.r(3))
    with ib.function("inner", 4, private=True):
        ib.emit_call("vm.builtin.make_tuple", [ib.r(i) for i in range(4)], dst=ib.r(4))
        ib.emit_ret(ib.r(4))
    exe = ib.get()
    exe.kernels = (KernelSet("cpu", b"\x7fELF", {"f": "f_1"}), KernelSet("gpu", b"", {}))
    exe.metadata = {"made by": "a test, ü"}
    return exe


def with_section(data: bytes, name: str, content: bytes) -> bytes:
    """`data` with another content of the section, at the end, and checksums that match."""
    count = len(SECTIONS)
    table = bytearray(data[: HEADER + count * ENTRY])
    padded = data + bytes(-len(data) % 64)
    entry = struct.pack(
        "<16sQQII", name.encode(), len(padded), len(content), zlib.crc32(content), 0
    )
    at = HEADER + SECTIONS.index(name) * ENTRY
    table[at : at + ENTRY] = entry
    header = bytes(table) + struct.pack("<II", zlib.crc32(table), 0)
    return header + padded[len(header) :] + content


def section(data: bytes, name: str) -> bytes:
    at = HEADER + SECTIONS.index(name) * ENTRY
    _, start, length, _, _ = struct.unpack("<16sQQII", data[at : at + ENTRY])
    return data[start : start + length]


def refused(data: bytes) -> str:
    with pytest.raises(ExecutableError) as error:
        from_bytes(data)
    return str(error.value)


# --- the same after loading -----------------------------------------------------------


def test_a_loaded_executable_is_the_saved_one(tmp_path: Path) -> None:
    exe = example()

    exe.save(tmp_path / "model.rxe")
    loaded = Executable.load(tmp_path / "model.rxe")

    assert loaded == exe
    assert loaded.functions == exe.functions
    assert loaded.kernels == exe.kernels
    assert loaded.metadata == exe.metadata
    assert (loaded.as_text(), loaded.stats()) == (exe.as_text(), exe.stats())
    assert os.listdir(tmp_path) == ["model.rxe"]


def test_loaded_constants_are_aligned_and_read_only(tmp_path: Path) -> None:
    example().save(tmp_path / "model.rxe")

    loaded = Executable.load(tmp_path / "model.rxe")

    weight = next(c for c in loaded.constants if isinstance(c, np.ndarray) and c.size)
    assert weight.ctypes.data % 64 == 0
    assert not weight.flags.writeable
    np.testing.assert_array_equal(weight, np.arange(12).reshape(3, 4))


def test_a_saved_executable_runs_in_another_process(tmp_path: Path) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    packed = {"test.matmul": np.matmul}
    expected = VirtualMachine(example(), packed)["main"](x)
    example().save(tmp_path / "model.rxe")
    np.save(tmp_path / "x.npy", x)
    program = (
        "import numpy as np\n"
        "from relax_egraph.vm import Executable, VirtualMachine\n"
        "exe = Executable.load('model.rxe')\n"
        "vm = VirtualMachine(exe, {'test.matmul': np.matmul})\n"
        "y, half, shape, empty = vm['main'](np.load('x.npy'))\n"
        "assert (half, shape, empty.dtype.name) == (0.5, (2, 3), 'int8')\n"
        "np.save('y.npy', y)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}

    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, check=True)

    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), expected[0])


def test_saving_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "model.rxe"
    example().save(path)
    old = path.read_bytes()
    broken = example()
    broken.metadata = {"not a text": object()}  # pyright: ignore[reportAttributeAccessIssue]

    with pytest.raises(TypeError, match="not JSON serializable"):
        broken.save(path)

    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == ["model.rxe"]


# --- damage ---------------------------------------------------------------------------


Damage: TypeAlias = Callable[[bytes], bytes]


def cut(length: int) -> Damage:
    def damage(data: bytes) -> bytes:
        return data[:length]

    return damage


def flip(place: int, bits: int = 1) -> Damage:
    def damage(data: bytes) -> bytes:
        return data[:place] + bytes([data[place] ^ bits]) + data[place + 1 :]

    return damage


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut(0), "header: this is no executable of relax-egraph"),
        (flip(1), "header: this is no executable of relax-egraph"),
        (cut(100), "header: cut off after 100 of 384 bytes"),
        (
            flip(8, 3),
            "header: version 2 of the format, this program reads 1",
        ),
        (flip(20), "header: the checksum does not match"),
        (
            flip(384),
            "section functions: the checksum does not match",
        ),
        (
            cut(-1),
            "section metadata: 28 bytes at 1536 are not in a file of 1563 bytes",
        ),
    ],
)
def test_a_damaged_file_is_refused_with_the_section(damage: Damage, message: str) -> None:
    data = damage(example().to_bytes())

    said = refused(data)

    assert said == message


def word(operand: Operand) -> int:
    return operand.value << 3 | operand.kind


RET, R0 = 2, word(ExecBuilder().r(0))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("functions", "{", "section functions: Expecting property name enclosed in double quotes: "
         "line 1 column 2 (char 1)"),
        ("functions", "[" * 100_000, None),
        ("functions", "{}", "section functions: {} is no list"),
        ("functions", '[["f", [], -1, 0, 5, [], false]]',
         "section functions: ['f', [], -1, 0, 5, [], False] is no function"),
        ("functions", '[["f", [], 9, 0, 7, [], false]]', "section code: function 'f': "
         "instruction 1: %0 is read before it is written"),
        ("functions", '[["f", ["x"], 9, 0, 5, [""], false]]',
         "section functions: they are not the whole code, each once"),
        ("functions", '[["f", [], 9, 0, 70, [], false]]', "section functions: f is instructions "
         "0 to 70, needs to begin at 0 and end within 7"),
        ("functions", '[["f", [], 9000000, 0, 7, [], false]]', "section code: function 'f': "
         "9000000 registers, needs 0 to 1048576"),
        ("callees", '["f", "f"]', "section callees: needs names, each once"),
        ("callees", '["f"]', "section code: function 'main': instruction 1: f[1] of 1 callees"),
        ("constants", "[]", "section code: function 'main': instruction 1: c[0] of 0 constants"),
        ("constants", '[["tensor", "float32", [9, 9], 0]]',
         "section tensors: no float32[9, 9] at byte 0 of 64"),
        ("constants", '[["tensor", "object", [1], 0]]',
         "section constants: ['tensor', 'object', [1], 0] is no constant"),
        ("constants", '[["tensor", "int8", [0, 4611686018427387903, 7], 0]]', None),
        ("constants", '[["float", "one"]]', "section constants: ['float', 'one'] is no constant"),
        ("constants", '[["int", true]]', "section constants: ['int', True] is no constant"),
        ("kernels", '[["cpu", 5, {}]]', "section objects: 4 bytes, the kernels have 5"),
        ("kernels", '[["cpu", 4, {"f": 3}]]',
         "section kernels: {'f': 3} is no table of texts"),
        ("kernels", "[4]", "section kernels: 4 is no kernel set"),
        ("metadata", "3", "section metadata: 3 is no table of texts"),
    ],
)  # fmt: skip
def test_a_section_that_lies_is_refused(name: str, content: str, message: str | None) -> None:
    data = with_section(example().to_bytes(), name, content.encode())

    said = refused(data)

    assert message is None or said == message
    assert said.startswith("section ")


@pytest.mark.parametrize(
    ("words", "offsets", "message"),
    [
        ([9], [0], "section code: word 0: no instruction has the opcode 9"),
        ([RET], [0], "section code: word 0: the instruction is cut off"),
        ([RET, 7], [0], "section code: no operand has the kind 7"),
        ([1, 0, 0, 1 << 40], [0], "section code: word 0: a call of 1099511627776 arguments"),
        ([RET, R0], [1], "section offsets: instruction 0 begins at word 1, needs 0"),
        ([RET, R0, 0], [0], "section offsets: 1 words of code are in no instruction"),
        ([4, 5], [0], "section code: function 'f': instruction 0: goes on at 5, outside of 0..0"),
        ([RET, 99 << 3], [0], "section code: function 'f': instruction 0: %99 of 1 registers"),
        ([RET, -8], [0], "section code: function 'f': instruction 0: %-1 of 1 registers"),
    ],
)
def test_code_that_lies_is_refused(words: list[int], offsets: list[int], message: str) -> None:
    data = example().to_bytes()
    functions = json.dumps([["f", ["x"], 1, 0, 1, [""], False]]).encode()
    data = with_section(data, "functions", functions)
    data = with_section(data, "code", np.array(words, "<i8").tobytes())
    data = with_section(data, "offsets", np.array(offsets, "<i8").tobytes())

    said = refused(data)

    assert said == message


def test_words_come_whole() -> None:
    said = refused(with_section(example().to_bytes(), "code", bytes(9)))

    assert said == "section code: 9 bytes are no whole words"


# --- any program, any damage ----------------------------------------------------------


@st.composite
def arrays(draw: st.DrawFn) -> Any:
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    dtype = draw(st.sampled_from(DTYPES))
    return np.full(shape, draw(st.integers(0, 1)), dtype)


def values() -> st.SearchStrategy[Any]:
    return st.one_of(
        st.integers(-(1 << 70), 1 << 70),
        st.integers(IMMEDIATE_MIN, IMMEDIATE_MAX),
        st.floats(),
        st.text(max_size=5),
        st.lists(st.integers(0, 1 << 40), max_size=3).map(tuple),
        st.sampled_from(DTYPES).map(np.dtype),
        arrays(),
    )


@st.composite
def programs(draw: st.DrawFn) -> Executable:
    """Functions of calls and forward branches over registers that are written."""
    ib = ExecBuilder()
    for number in range(draw(st.integers(1, 3))):
        inputs = draw(st.integers(0, 3))
        private = draw(st.booleans())
        with ib.function(f"f{number}", inputs, private=private, allow_unused=True):
            written = inputs
            for _ in range(draw(st.integers(0, 5))):
                operands = st.one_of(
                    values(),
                    st.sampled_from([ib.vm_state(), ib.void_arg()]),
                    st.sampled_from(["f0", "g"]).map(ib.f),
                    *([st.integers(0, written - 1).map(ib.r)] if written else []),
                )
                name = draw(st.sampled_from(["g", "h", "f0", "ü"]))
                ib.emit_call(name, draw(st.lists(operands, max_size=4)), dst=ib.r(written))
                written += 1
                if draw(st.booleans()):
                    end = ib.label()
                    ib.emit_if(ib.r(draw(st.integers(0, written - 1))), end)
                    ib.emit_call("g")
                    ib.emit_goto(1)
                    ib.place(end)
            ib.emit_ret(ib.r(written - 1) if written else draw(values()))
    exe = ib.get()
    exe.kernels = tuple(
        KernelSet(*kernel)
        for kernel in draw(
            st.lists(
                st.tuples(
                    st.text(max_size=3),
                    st.binary(max_size=9),
                    st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
                ),
                max_size=2,
            )
        )
    )
    return exe


@settings(max_examples=60, deadline=None)
@given(programs())
def test_any_program_comes_back_from_bytes_and_from_python(exe: Executable) -> None:
    scope = {"ExecBuilder": ExecBuilder, "constants": exe.constants}

    loaded = from_bytes(exe.to_bytes())
    exec(exe.as_python(), scope)

    rebuilt: Any = scope["executable"]
    rebuilt.kernels = exe.kernels
    assert loaded == exe
    assert loaded.as_text() == exe.as_text()
    assert rebuilt == exe


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_flipped_bytes_are_noticed_or_do_not_matter(data: st.DataObject) -> None:
    exe = example()
    damaged = bytearray(exe.to_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= data.draw(st.integers(1, 255))

    try:
        loaded = from_bytes(bytes(damaged))
    except ExecutableError:
        return

    assert loaded == exe


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_truncated_file_is_refused(data: st.DataObject) -> None:
    whole = example().to_bytes()
    length = data.draw(st.integers(0, len(whole) - 1))

    said = refused(whole[:length])

    assert said.startswith(("header: ", "section "))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damage_behind_matching_checksums_is_refused_or_loads_what_can_be_listed(
    data: st.DataObject,
) -> None:
    whole = example().to_bytes()
    name = data.draw(st.sampled_from(SECTIONS))
    content = bytearray(section(whole, name))
    for _ in range(data.draw(st.integers(0, 3)) if content else 0):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    content = content[: data.draw(st.integers(0, len(content)))]

    try:
        loaded = from_bytes(with_section(whole, name, bytes(content)))
    except ExecutableError:
        return

    assert loaded.as_text().startswith(("@", "private @"))
    assert from_bytes(loaded.to_bytes()) == loaded
