"""The listings of the virtual machine: instructions, builder, executable, machine, shape heap."""

import operator
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from relax_egraph.errors import IllFormed
from relax_egraph.vm import ExecBuilder, Executable, VirtualMachine, register_func
from relax_egraph.vm.bytecode import Call, Goto, If, Opcode, Operand, Ret, decode
from relax_egraph.vm.executable import VMFunction
from relax_egraph.vm.registry import unregister_func
from tests.seeds.programs import Array, floats


@contextmanager
def registered_for_a_test(*names: str) -> Generator[None]:
    """Forget afterwards what was registered inside."""
    try:
        yield
    finally:
        for name in names:
            unregister_func(name)


# --- instructions -------------------------------------------------------------------------


def count_down() -> Executable:
    """``main(n)`` subtracts 1 from `n` until it is 0: all four instructions."""
    ib = ExecBuilder()
    with ib.function("main", num_inputs=1):
        ib.emit_call("vm.builtin.copy", [ib.r(0)], dst=ib.r(1))
        ib.emit_if(ib.r(1), 3)
        ib.emit_call("test.sub", [ib.r(1), ib.imm(1)], dst=ib.r(1))
        ib.emit_goto(-2)
        ib.emit_ret(ib.r(1))
    return ib.get()


def test_there_are_four_instructions() -> None:
    executable = count_down()

    kinds = [type(i) for i in executable.instructions(executable["main"])]

    assert [o.name for o in Opcode] == ["CALL", "RET", "IF", "GOTO"]
    assert kinds == [Call, If, Call, Goto, Ret]
    assert executable.as_text() == (
        "@main(arg0):\n"
        "    0  call  vm.builtin.copy  in: %0  dst: %1\n"
        "    1  if    %1  else: 4\n"
        "    2  call  test.sub  in: %1, i1  dst: %1\n"
        "    3  goto  1\n"
        "    4  ret   %1"
    )


def test_jumps_are_relative_to_the_instruction() -> None:
    vm = VirtualMachine(count_down(), {"test.sub": operator.sub})

    assert [vm["main"](n) for n in (0, 1, 5)] == [0, 0, 0]


# --- the builder --------------------------------------------------------------------------


def test_a_program_of_constants_immediates_and_registers() -> None:
    """Corrected: the functions are registered as ``vm.move``, which the calls name, not else.

    Added: the constant that ``c(0)`` is.
    """
    with registered_for_a_test("vm.move", "vm.add", "vm.mul"):

        @register_func("vm.move")
        def move(src: Array) -> Array:
            return src

        @register_func("vm.add")
        def add(a: Array, b: int) -> Array:
            return a + b

        @register_func("vm.mul")
        def mul(a: Array, b: Array) -> Array:
            return a * b

        ib = ExecBuilder(constants=[np.array([10.0, 20.0])])
        with ib.function("main", num_inputs=1):
            ib.emit_call("vm.move", [ib.c(0)], dst=ib.r(1))
            ib.emit_call("vm.add", [ib.r(0), ib.imm(10)], dst=ib.r(2))
            ib.emit_call("vm.mul", [ib.r(2), ib.r(1)], dst=ib.r(3))
            ib.emit_ret(ib.r(3))
        executable = ib.get()

        result = VirtualMachine(executable)["main"](np.array([1.0, 2.0]))

    np.testing.assert_array_equal(result, [110, 240])
    assert move(result) is result
    np.testing.assert_array_equal(mul(add(result, -110), result), [0, 240 * 130])


def test_constants_are_tensors_and_dtypes() -> None:
    ib = ExecBuilder(constants=[np.arange(3), np.dtype("float32")])
    with ib.function("main"):
        ib.emit_call("cast", [ib.c(0), ib.c(1)], dst=ib.r(0))
        ib.emit_ret(ib.r(0))

    result = VirtualMachine(ib.get(), {"cast": np.asarray})["main"]()

    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, [0, 1, 2])


def test_a_register_that_is_no_input_and_not_written_is_refused() -> None:
    ib = ExecBuilder()

    def build() -> None:
        with ib.function("main", num_inputs=2):
            ib.emit_call("add", [ib.r(0), ib.r(3)], dst=ib.r(2))
            ib.emit_ret(ib.r(2))

    with pytest.raises(IllFormed) as refused:
        build()

    assert str(refused.value) == ("function 'main': instruction 0: %3 is read before it is written")


def test_an_input_that_is_left_out_is_a_warning() -> None:
    ib = ExecBuilder()

    def build() -> None:
        with ib.function("main", num_inputs=3):
            ib.emit_call("add", [ib.r(0), ib.r(2)], dst=ib.r(3))
            ib.emit_ret(ib.r(3))

    with pytest.warns(UserWarning, match="^function 'main' does not use its inputs: arg1$"):
        build()

    assert ib.get()["main"].params == ("arg0", "arg1", "arg2")


def test_registers_are_numbered_in_order_of_use() -> None:
    ib = ExecBuilder()

    with ib.function("main", num_inputs=1):
        ib.emit_call("f", [ib.r(0)], dst=ib.r(10000))
        ib.emit_call("g", [ib.r(10000), ib.r(0)], dst=ib.r(500))
        ib.emit_ret(ib.r(500))

    assert ib.get()["main"].num_registers == 3
    assert ib.get().as_text() == (
        "@main(arg0):\n"
        "    0  call  f  in: %0  dst: %1\n"
        "    1  call  g  in: %1, %0  dst: %2\n"
        "    2  ret   %2"
    )


# --- the executable -----------------------------------------------------------------------


def func0() -> Executable:
    ib = ExecBuilder()
    with ib.function("func0", num_inputs=2):
        ib.emit_call("vm.op.add", args=[ib.r(0), ib.r(1)], dst=ib.r(2))
        ib.emit_call("vm.builtin.move", args=[ib.r(2)], dst=ib.r(3))
        ib.emit_call("vm.builtin.print", args=[ib.r(3)])
        ib.emit_ret(ib.r(3))
    return ib.get()


def test_an_executable_is_functions_constants_names_and_words() -> None:
    executable = func0()

    assert executable.functions == (
        VMFunction("func0", ("arg0", "arg1"), num_registers=4, start=0, end=4, param_info=("", "")),
    )
    assert executable.constants == ()
    assert executable.callees == ("vm.op.add", "vm.builtin.move", "vm.builtin.print")
    assert executable.code.tolist() == [
        *[Opcode.CALL, 2 << 3, 0, 2, 0 << 3, 1 << 3],
        *[Opcode.CALL, 3 << 3, 1, 1, 2 << 3],
        *[Opcode.CALL, 5, 2, 1, 3 << 3],
        *[Opcode.RET, 3 << 3],
    ]
    assert executable.offsets.tolist() == [0, 6, 11, 16]


def test_emitting_adds_the_name_once_then_an_offset_then_words() -> None:
    ib = ExecBuilder()
    with ib.function("main", num_inputs=2):
        ib.emit_call("add", [ib.r(0), ib.r(1)], dst=ib.r(2))
        ib.emit_call("add", [ib.r(2), ib.r(2)], dst=ib.r(2))
        ib.emit_ret(ib.r(2))

    executable = ib.get()

    assert executable.callees == ("add",)
    assert executable.offsets.tolist() == [0, 6, 12]


def test_an_instruction_is_found_by_its_offset() -> None:
    executable = func0()
    words = executable.code.tolist()

    found = [decode(words, offset)[0] for offset in executable.offsets.tolist()]

    r = ExecBuilder().r
    assert found == [
        Call(0, (r(0), r(1)), r(2)),
        Call(1, (r(2),), r(3)),
        Call(2, (r(3),), ExecBuilder().void_arg()),
        Ret(r(3)),
    ]
    assert found == executable.instructions(executable["func0"])
    assert all(isinstance(i, Call | Ret) for i in found)


def test_an_executable_is_saved_as_the_words_it_runs(tmp_path: Path) -> None:
    executable = func0()

    executable.save(tmp_path / "func0.rxe")
    loaded = Executable.load(tmp_path / "func0.rxe")

    assert loaded == executable
    assert loaded.code.tolist() == executable.code.tolist()
    assert loaded.offsets.tolist() == executable.offsets.tolist()


def test_an_executable_is_counted() -> None:
    assert func0().stats() == (
        "executable:\n"
        "  functions (1): func0\n"
        "  packed functions (3): vm.op.add, vm.builtin.move, vm.builtin.print\n"
        "  constants (0): 0 bytes of tensors\n"
        "  code: 4 instructions, 18 words\n"
        "  kernels: 0 in 0 bytes"
    )


def test_an_executable_is_listed() -> None:
    assert func0().as_text() == (
        "@func0(arg0, arg1):\n"
        "    0  call  vm.op.add  in: %0, %1  dst: %2\n"
        "    1  call  vm.builtin.move  in: %2  dst: %3\n"
        "    2  call  vm.builtin.print  in: %3  dst: void\n"
        "    3  ret   %3"
    )


def test_the_listed_program_runs() -> None:
    printed: list[Array] = []
    packed = {"vm.op.add": np.add, "vm.builtin.move": np.copy, "vm.builtin.print": printed.append}
    x, y = floats(4), np.ones(4, np.float32)

    result = VirtualMachine(func0(), packed)["func0"](x, y)

    np.testing.assert_array_equal(result, x + y)
    assert len(printed) == 1
    assert printed[0] is result


TIMED = """\
ib = ExecBuilder(constants)
with ib.function('func0', 2, ('arg0', 'arg1'), ('', ''), allow_unused=True):
    ib.emit_call('vm.op.add', [ib.r(0), ib.r(1)], dst=ib.r(2))
    ib.emit_call('time', [], dst=ib.r(3))
    ib.emit_call('vm.builtin.move', [ib.r(2)], dst=ib.r(4))
    ib.emit_call('time', [], dst=ib.r(5))
    ib.emit_call('vm.builtin.print', [ib.r(4)])
    ib.emit_ret(ib.r(4))
executable = ib.get()
"""


def test_an_executable_is_a_program_in_python() -> None:
    """Added: the listing ends before it gets the executable."""
    ib = ExecBuilder()
    with ib.function("func0", num_inputs=2):
        ib.emit_call("vm.op.add", args=[ib.r(0), ib.r(1)], dst=ib.r(2))
        ib.emit_call("time", dst=ib.r(100))
        ib.emit_call("vm.builtin.move", args=[ib.r(2)], dst=ib.r(3))
        ib.emit_call("time", dst=ib.r(101))
        ib.emit_call("vm.builtin.print", args=[ib.r(3)])
        ib.emit_ret(ib.r(3))
    executable = ib.get()

    names = {"ExecBuilder": ExecBuilder, "constants": executable.constants}
    exec(executable.as_python(), names)

    assert executable.as_python() == TIMED
    assert names["executable"] == executable


# --- the machine --------------------------------------------------------------------------


def test_a_machine_calls_the_functions_of_an_executable() -> None:
    with registered_for_a_test("test.vm.add", "test.vm.mul"):
        register_func("test.vm.add")(np.add)
        register_func("test.vm.mul")(np.multiply)
        ib = ExecBuilder()
        with ib.function("func0", num_inputs=2):
            ib.emit_call("test.vm.add", args=[ib.r(0), ib.r(1)], dst=ib.r(2))
            ib.emit_ret(ib.r(2))
        with ib.function("func1", num_inputs=2):
            ib.emit_call("test.vm.mul", args=[ib.r(0), ib.r(1)], dst=ib.r(2))
            ib.emit_ret(ib.r(2))
        ex = ib.get()

        vm = VirtualMachine(ex)
        a, b = np.random.default_rng(0).random((2, 4))
        mul_res = vm["func1"](a, b)
        add_res = vm["func0"](a, b)

    np.testing.assert_allclose(add_res, a + b)
    np.testing.assert_allclose(mul_res, a * b)


def test_functions_are_given_the_state_of_the_machine() -> None:
    ib = ExecBuilder()
    with ib.function("main"):
        ib.emit_call("vm.builtin.alloc_storage", args=[ib.vm_state(), 256], dst=ib.r(0))
        ib.emit_call("seen", args=[ib.vm_state(), ib.r(0)], dst=ib.r(1))
        ib.emit_ret(ib.r(1))

    def seen(state: object, storage: Array) -> tuple[bool, int]:
        return state is vm, storage.size

    vm = VirtualMachine(ib.get(), {"seen": seen})

    assert vm["main"]() == (True, 256)


def test_a_shape_goes_through_the_heap() -> None:
    ib = ExecBuilder()
    shape = (32, 16)
    x = np.random.default_rng(0).random(shape)
    with ib.function("main", num_inputs=0):
        ib.emit_call("vm.builtin.alloc_shape_heap", args=[ib.imm(2)], dst=ib.r(0))
        ib.emit_call("vm.builtin.shape_of", args=[x], dst=ib.r(1))
        ib.emit_call("vm.builtin.store_shape", args=[ib.r(1), ib.r(0), ib.imm(0), ib.imm(1)])
        ib.emit_call("vm.builtin.load_shape", args=[ib.r(0), ib.imm(0), ib.imm(1)], dst=ib.r(2))
        ib.emit_ret(ib.r(2))

    result = VirtualMachine(ib.get())["main"]()

    assert result == (32, 16)


def test_operands_are_written_as_the_listings_write_them() -> None:
    ib = ExecBuilder()
    operands: list[Operand] = [ib.r(2), ib.imm(10), ib.c(0), ib.vm_state(), ib.void_arg()]

    assert list(map(str, operands)) == ["%2", "i10", "c[0]", "vm", "void"]
