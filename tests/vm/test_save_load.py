"""Saved executables: the same after loading, and refused when they are damaged."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import relax_egraph as rx
from relax_egraph.errors import ExecutableError
from relax_egraph.ir.dtypes import DTYPES
from relax_egraph.vm import ExecBuilder, Executable, KernelSet, VirtualMachine
from relax_egraph.vm.binary import from_bytes
from relax_egraph.vm.bytecode import IMMEDIATE_MAX, IMMEDIATE_MIN, Operand
from relax_egraph.vm.sections import SECTIONS
from tests.support.random_bytecode import Program
from tests.support.random_programs import random_program
from tests.support.sectioned import contents_of, with_section


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
    exe.kernels = (
        KernelSet("cpu", b"head", {"f": "f_1"}, (b"\x7fELF", b"shared")),
        KernelSet("gpu", b"", {}, (b"shared",)),
    )
    exe.origins = ("", "", "product", "", "", "", "")
    exe.work = {"f": "2 * @0"}
    exe.metadata = {"made by": "a test, ü"}
    return exe


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
    assert loaded.origins == exe.origins
    assert loaded.work == exe.work
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


def longer(data: bytes) -> bytes:
    return data + b"\0"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut(0), "header: this is no executable of relax-egraph"),
        (flip(1), "header: this is no executable of relax-egraph"),
        (cut(100), "header: cut off after 100 of 464 bytes"),
        (
            flip(8, 3),
            "header: version 1 of the format, this program reads version 2: build the module again",
        ),
        (
            flip(8, 5),
            "header: version 7 of the format, this program reads version 2: "
            "it needs a newer relax-egraph",
        ),
        (flip(12), "header: 10 sections, needs 11"),
        (flip(20), "header: the checksum does not match"),
        (flip(460), "header: the checksum does not match"),
        (flip(470), "section functions: something lies before it, needs zeros"),
        (flip(512), "section functions: the checksum does not match"),
        (cut(-1), "section metadata: 24 bytes at 1856 are not in a file of 1879 bytes"),
        (longer, "header: 1 bytes lie behind the last section"),
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
        ("kernels", '{"sizes": [5], "sets": []}', "section objects: 14 bytes, the kernels have 5"),
        ("kernels", '{"sizes": [14], "sets": [["cpu", {"f": 3}, [0]]]}',
         "section kernels: {'f': 3} is no table of texts"),
        ("kernels", '{"sizes": [14], "sets": [["cpu", {}, [1]]]}',
         "section kernels: ['cpu', {}, [1]] is no kernel set"),
        ("kernels", '{"sizes": [14], "sets": [4]}', "section kernels: 4 is no kernel set"),
        ("kernels", "[]", "section kernels: [] is no table of kernels"),
        ("origins", '["a"]', "section origins: needs a line for each of 7 instructions"),
        ("work", '{"f": "@0 +"}', None),
        ("work", '{"f": "__import__(1)"}', None),
        ("metadata", "3", "section metadata: 3 is no table of texts"),
        ("metadata", '{"a": "", "a": ""}', "section metadata: an object has a name twice"),
        ("metadata", '{"a": "\\ud800"}', "section metadata: a text has half of a surrogate pair"),
        ("constants", '[["int", NaN]]', "section constants: NaN is no number"),
        ("constants", '[["int", -Infinity]]', "section constants: -Infinity is no number"),
        ("constants", '[["int", 1e999]]', "section constants: ['int', inf] is no constant"),
        ("constants", '[["int", ' + "9" * 5000 + "]]", None),
        ("metadata", b"\xff", None),
    ],
)  # fmt: skip
def test_a_section_that_lies_is_refused(
    name: str, content: str | bytes, message: str | None
) -> None:
    written = content.encode() if isinstance(content, str) else content
    data = with_section(example().to_bytes(), name, written)

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
    data = with_section(data, "origins", b"[]")
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
                    st.lists(st.binary(max_size=2), max_size=2).map(tuple),
                ),
                max_size=2,
            )
        )
    )
    return exe


@settings(max_examples=60, deadline=None)
@given(programs())
def test_any_program_comes_back_from_bytes_and_from_python(exe: Executable) -> None:
    loaded = from_bytes(exe.to_bytes())

    assert loaded == exe
    assert loaded.as_text() == exe.as_text()
    assert_rebuilt(exe)


@pytest.mark.parametrize("slice", range(4))
def test_a_random_program_comes_back_from_python(slice: int) -> None:
    for seed in range(slice * 30, slice * 30 + 30):
        program = Program(seed).write().get()

        assert_rebuilt(program)


@pytest.mark.parametrize("seed", range(8))
def test_a_built_module_comes_back_from_bytes_and_from_python(seed: int) -> None:
    built = rx.build(random_program(seed).module)

    assert from_bytes(built.to_bytes()) == built
    assert_rebuilt(built)


def assert_rebuilt(executable: Executable) -> None:
    """Running `as_python` gives the same code; kernels and metadata are not in it."""
    scope: dict[str, Any] = {"ExecBuilder": ExecBuilder, "constants": executable.constants}

    exec(executable.as_python(), scope)

    rebuilt: Executable = scope["executable"]
    assert rebuilt.functions == executable.functions
    assert rebuilt.callees == executable.callees
    assert rebuilt.code.tolist() == executable.code.tolist()
    assert rebuilt.offsets.tolist() == executable.offsets.tolist()
    assert rebuilt.origins == executable.origins
    bare = replace(executable, kernels=(), metadata={}, work={})
    assert rebuilt == bare


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_flipped_bytes_are_noticed(data: st.DataObject) -> None:
    damaged = bytearray(example().to_bytes())
    places = st.lists(st.integers(0, len(damaged) - 1), min_size=1, max_size=4, unique=True)
    for place in data.draw(places):
        damaged[place] ^= data.draw(st.integers(1, 255))

    said = refused(bytes(damaged))

    assert said.startswith(("header: ", "section "))


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
    content = bytearray(contents_of(whole)[name])
    for _ in range(data.draw(st.integers(0, 3)) if content else 0):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    content = content[: data.draw(st.integers(0, len(content)))]

    try:
        loaded = from_bytes(with_section(whole, name, bytes(content)))
    except ExecutableError:
        return

    assert loaded.as_text().startswith(("@", "private @"))
    assert from_bytes(loaded.to_bytes()) == loaded
