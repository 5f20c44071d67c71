"""The interpreter: what it runs, what it takes, what it says."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from relax_egraph.errors import ExecutableError, RunError
from relax_egraph.vm import Executable, ExecBuilder, VirtualMachine, register_func
from relax_egraph.vm.bytecode import Operand
from relax_egraph.vm.exec_builder import Value
from relax_egraph.vm.registry import unregister_func


def one_call(name: str, args: Sequence[Value], *, num_inputs: int = 0) -> Executable:
    """``main`` returns ``name(args…)``."""
    ib = ExecBuilder()
    with ib.function("main", num_inputs, allow_unused=True):
        ib.emit_call(name, args, dst=ib.r(99))
        ib.emit_ret(ib.r(99))
    return ib.get()


def r(index: int) -> Operand:
    return ExecBuilder().r(index)


def fails(run: Callable[[], object]) -> str:
    with pytest.raises(RunError) as error:
        run()
    return str(error.value)


class Elsewhere:
    """An array of another library."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack__(self, **kwargs: Any) -> Any:
        if self._array is None:
            raise BufferError("it lies on another device")
        return self._array.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


# --- programs -------------------------------------------------------------------------


def test_calls_pass_registers_immediates_and_constants() -> None:
    ib = ExecBuilder()
    with ib.function("main", 1):
        ib.emit_call("move", [np.float32([10, 20])], dst=ib.r(1))
        ib.emit_call("add", [ib.r(0), ib.imm(10)], dst=ib.r(2))
        ib.emit_call("mul", [ib.r(2), ib.r(1)], dst=ib.r(3))
        ib.emit_ret(ib.r(3))
    packed = {"move": lambda x: x, "add": np.add, "mul": np.multiply}

    result = VirtualMachine(ib.get(), packed)["main"](np.float32([1, 2]))

    np.testing.assert_array_equal(result, np.float32([110, 240]))


def test_a_loop_runs_until_its_condition_is_false() -> None:
    ib = ExecBuilder()
    with ib.function("main", 1):
        again, end = ib.label(), ib.label()
        ib.emit_call("vm.builtin.copy", [0], dst=ib.r(1))
        ib.place(again)
        ib.emit_call("less", [ib.r(1), ib.r(0)], dst=ib.r(2))
        ib.emit_if(ib.r(2), end)
        ib.emit_call("add", [ib.r(1), 3], dst=ib.r(1))
        ib.emit_goto(again)
        ib.place(end)
        ib.emit_ret(ib.r(1))
    vm = VirtualMachine(ib.get(), {"less": lambda a, b: a < b, "add": lambda a, b: a + b})

    results = [vm["main"](limit) for limit in (0, 7, 9)]

    assert results == [0, 9, 9]


def factorial() -> Executable:
    ib = ExecBuilder()
    with ib.function("factorial", 1, ["n"]):
        zero = ib.label()
        ib.emit_if(ib.r(0), zero)
        ib.emit_call("sub", [ib.r(0), 1], dst=ib.r(1))
        ib.emit_call("factorial", [ib.r(1)], dst=ib.r(2))
        ib.emit_call("mul", [ib.r(0), ib.r(2)], dst=ib.r(3))
        ib.emit_ret(ib.r(3))
        ib.place(zero)
        ib.emit_ret(ib.imm(1))
    return ib.get()


def test_recursion_is_not_bounded_by_the_stack_of_python() -> None:
    vm = VirtualMachine(factorial(), {"sub": lambda a, b: a - b, "mul": lambda a, b: a * b % 1009})

    results = [vm["factorial"](n) for n in (0, 1, 5, 5000)]

    assert results == [1, 1, 120, 0]


def test_recursion_without_end_is_an_error() -> None:
    packed = {"sub": lambda a, b: a, "mul": lambda a, b: a * b}
    vm = VirtualMachine(factorial(), packed, max_depth=100)

    message = fails(lambda: vm["factorial"](1))

    assert message == "more than 100 calls within calls"


def test_a_function_is_a_value_and_closures_capture() -> None:
    ib = ExecBuilder()
    with ib.function("pair", 2, private=True):
        ib.emit_call("vm.builtin.make_tuple", [ib.r(0), ib.r(1)], dst=ib.r(2))
        ib.emit_ret(ib.r(2))
    with ib.function("main", 1):
        ib.emit_call("vm.builtin.make_closure", [ib.f("pair"), ib.imm(7)], dst=ib.r(1))
        ib.emit_call("vm.builtin.invoke_closure", [ib.r(1), ib.r(0)], dst=ib.r(2))
        ib.emit_call("vm.builtin.tuple_getitem", [ib.r(2), 0], dst=ib.r(3))
        ib.emit_call("vm.builtin.make_tuple", [ib.r(2), ib.r(3)], dst=ib.r(4))
        ib.emit_ret(ib.r(4))

    result = VirtualMachine(ib.get())["main"](5)

    assert result == ((7, 5), 7)


def test_a_closure_takes_as_many_arguments_as_its_function() -> None:
    ib = ExecBuilder()
    with ib.function("identity", 1):
        ib.emit_ret(ib.r(0))
    with ib.function("main"):
        ib.emit_call("vm.builtin.invoke_closure", [ib.f("identity"), 1, 2], dst=ib.r(0))
        ib.emit_ret(ib.r(0))

    message = fails(VirtualMachine(ib.get())["main"])

    assert message == "closure identity takes 1 arguments, got 2"


def test_void_arrives_as_none_and_the_machine_as_itself() -> None:
    ib = ExecBuilder()
    with ib.function("main"):
        ib.emit_call("tuple", [ib.void_arg(), ib.vm_state()], dst=ib.r(0))
        ib.emit_ret(ib.r(0))
    vm = VirtualMachine(ib.get(), {"tuple": lambda *args: args})

    result = vm["main"]()

    assert result == (None, vm)


def test_a_private_function_is_not_callable_from_outside() -> None:
    ib = ExecBuilder()
    with ib.function("inner", private=True):
        ib.emit_ret(ib.imm(1))
    with ib.function("main"):
        ib.emit_call("inner", dst=ib.r(0))
        ib.emit_ret(ib.r(0))
    vm = VirtualMachine(ib.get())

    with pytest.raises(KeyError) as error:
        _ = vm["inner"]

    assert error.value.args == ("no function 'inner' to call; there are: main",)
    assert vm["main"]() == 1


# --- arguments ------------------------------------------------------------------------


def three() -> Callable[..., Any]:
    ib = ExecBuilder()
    with ib.function("main", 3, ["x", "y", "z"], ['R.Tensor((n,), "float32")', "R.Prim", ""]):
        ib.emit_call("vm.builtin.make_tuple", [ib.r(0), ib.r(1), ib.r(2)], dst=ib.r(3))
        ib.emit_ret(ib.r(3))
    return VirtualMachine(ib.get())["main"]


def test_arguments_are_given_by_position_or_by_name() -> None:
    main = three()

    results = [main(1, 2, 3), main(1, 2, z=3), main(z=3, x=1, y=2)]

    assert results == [(1, 2, 3)] * 3


@pytest.mark.parametrize(
    ("args", "named", "message"),
    [
        ((1, 2), {}, " takes 3 arguments, got 2"),
        ((1, 2, 3, 4), {}, " takes 3 arguments, got 4"),
        ((1, 2), {"w": 3}, " has no parameter w"),
        ((1, 2), {"y": 3}, ": parameter y is given twice"),
        ((1,), {"z": 3}, ": parameter y is missing"),
    ],
)
def test_every_parameter_is_given_once(
    args: tuple[int, ...], named: dict[str, int], message: str
) -> None:
    main = three()

    said = fails(lambda: main(*args, **named))

    assert said == f'main(x: R.Tensor((n,), "float32"), y: R.Prim, z){message}'


def identity() -> Callable[[object], Any]:
    ib = ExecBuilder()
    with ib.function("main", 1, ["x"]):
        ib.emit_ret(ib.r(0))
    return VirtualMachine(ib.get())["main"]


def test_a_plain_array_is_passed_as_it_is() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)

    result = identity()(x)

    assert result is x


@pytest.mark.parametrize(
    "value",
    [
        np.arange(12, dtype=np.float32).reshape(3, 4).T,
        np.arange(12, dtype=np.float32)[::3],
        np.arange(3, dtype=">f4"),
        np.frombuffer(bytes(17), np.uint8)[1:].view(np.float64),
        np.float64(3),
        np.zeros((0, 4), np.int8)[::-1],
    ],
    ids=["transposed", "strided", "big-endian", "unaligned", "scalar", "empty"],
)
def test_other_arrays_are_copied_to_plain_ones(value: Any) -> None:
    result = identity()(value)

    assert type(result) is np.ndarray
    assert result.flags.c_contiguous
    assert result.flags.aligned
    assert result.dtype == value.dtype.newbyteorder("=")
    np.testing.assert_array_equal(result, value, strict=False)


def test_arrays_of_other_libraries_come_through_dlpack() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)

    result = identity()(Elsewhere(x))

    np.testing.assert_array_equal(result, x)
    assert np.shares_memory(result, x)


def test_an_array_that_dlpack_cannot_give_is_an_error() -> None:
    message = fails(lambda: identity()(Elsewhere(None)))

    assert message == (
        "main: parameter x: cannot read the Elsewhere through DLPack: it lies on another device"
    )


def test_lists_and_tuples_become_tuples_of_arrays() -> None:
    x = np.arange(4.0)[::2]

    result = identity()([x, (1, Elsewhere(x))])

    assert type(result) is tuple
    np.testing.assert_array_equal(result[0], x)
    assert result[1][0] == 1
    np.testing.assert_array_equal(result[1][1], x)


# --- packed functions -----------------------------------------------------------------


def test_registered_functions_are_found_and_given_ones_go_before_them() -> None:
    @register_func("test.answer")
    def answer() -> int:
        return 42

    try:
        vm = VirtualMachine(one_call("test.answer", []))
        other = VirtualMachine(one_call("test.answer", []), {"test.answer": lambda: 43})
        with pytest.raises(ValueError, match="the packed function 'test.answer' is registered"):
            register_func("test.answer")(answer)
    finally:
        unregister_func("test.answer")

    assert (vm["main"](), other["main"]()) == (42, 43)


def test_the_linker_gives_the_kernels() -> None:
    exe = one_call("kernel", [r(0)], num_inputs=1)
    exe.linker = lambda linked: {"kernel": lambda x: (x, linked is exe)}

    result = VirtualMachine(exe)["main"](3)

    assert result == (3, True)


def test_functions_that_are_nowhere_are_listed_before_anything_runs() -> None:
    ib = ExecBuilder()
    with ib.function("main"):
        ib.emit_call("vm.builtin.copy", [0])
        ib.emit_call("f")
        ib.emit_call("g", dst=ib.r(0))
        ib.emit_ret(ib.r(0))

    message = fails(lambda: VirtualMachine(ib.get()))

    assert message == (
        "no packed function f, g: give it in packed=, or register it with register_func"
    )


def test_an_exception_arrives_with_a_note_and_the_machine_stays_usable() -> None:
    def check(x: int) -> int:
        if x < 0:
            raise ArithmeticError("negative")
        return x

    ib = ExecBuilder()
    with ib.function("inner", 1):
        ib.emit_call("check", [ib.r(0)], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    with ib.function("main", 1):
        ib.emit_call("inner", [ib.r(0)], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    vm = VirtualMachine(ib.get(), {"check": check})

    with pytest.raises(ArithmeticError) as error:
        vm["main"](-1)

    assert error.value.__notes__ == [
        "in function 'inner', instruction 0: call  check  in: %0  dst: %1"
    ]
    assert vm["main"](5) == 5


def test_two_threads_run_one_machine() -> None:
    vm = VirtualMachine(factorial(), {"sub": lambda a, b: a - b, "mul": lambda a, b: a * b})
    results: list[int] = []
    threads = [
        threading.Thread(target=lambda n=n: results.append(vm["factorial"](n))) for n in range(9)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(results) == [1, 1, 2, 6, 24, 120, 720, 5040, 40320]


# --- loading --------------------------------------------------------------------------


def test_a_builtin_takes_its_constants_as_constants() -> None:
    exe = one_call("vm.builtin.load_shape", [r(0), r(1)], num_inputs=2)

    with pytest.raises(ExecutableError) as error:
        VirtualMachine(exe)

    assert str(error.value) == (
        "section code: function 'main': instruction 0: vm.builtin.load_shape "
        "takes constants after operand 1"
    )


def test_a_call_with_another_number_of_arguments_is_refused() -> None:
    ib = ExecBuilder()
    with ib.function("inner", 1):
        ib.emit_ret(ib.r(0))
    with ib.function("main"):
        ib.emit_call("inner", [1, 2], dst=ib.r(0))
        ib.emit_ret(ib.r(0))

    with pytest.raises(ExecutableError) as error:
        VirtualMachine(ib.get())

    assert str(error.value) == (
        "section code: function 'main': instruction 0: inner takes 1 arguments, got 2"
    )


def test_a_builtin_that_takes_constants_is_no_value() -> None:
    ib = ExecBuilder()
    with ib.function("main"):
        ib.emit_ret(ib.f("vm.builtin.match_shape"))

    with pytest.raises(ExecutableError) as error:
        VirtualMachine(ib.get())

    assert str(error.value) == (
        "section code: vm.builtin.match_shape is no value: it takes constants"
    )
