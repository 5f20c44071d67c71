"""The interpreter: what it runs, what it takes, what it says."""

import operator
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from relax_egraph.errors import ExecutableError, RunError
from relax_egraph.vm import ExecBuilder, Executable, VirtualMachine, register_func
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


def floats(*values: float) -> Any:
    return np.array(values, np.float32)


def first(x: Any, *_: Any) -> Any:
    return x


def modular(a: int, b: int) -> int:
    return a * b % 1009


def r(index: int) -> Operand:
    return ExecBuilder().r(index)


def fails(run: Callable[[], object]) -> str:
    with pytest.raises(RunError) as error:
        run()
    return str(error.value)


# --- programs -------------------------------------------------------------------------


def test_a_condition_that_is_a_tensor_is_refused() -> None:
    ib = ExecBuilder()
    with ib.function("main", 1):
        otherwise = ib.label()
        ib.emit_if(ib.r(0), otherwise)
        ib.emit_ret(1)
        ib.place(otherwise)
        ib.emit_ret(0)

    message = 'the condition is R.Tensor((2,), "float32"), needs a boolean'
    assert fails(lambda: VirtualMachine(ib.get())["main"](floats(1, 2))) == message


def test_calls_pass_registers_immediates_and_constants() -> None:
    ib = ExecBuilder()
    with ib.function("main", 1):
        ib.emit_call("move", [floats(10, 20)], dst=ib.r(1))
        ib.emit_call("add", [ib.r(0), ib.imm(10)], dst=ib.r(2))
        ib.emit_call("mul", [ib.r(2), ib.r(1)], dst=ib.r(3))
        ib.emit_ret(ib.r(3))
    packed = {"move": first, "add": np.add, "mul": np.multiply}

    result = VirtualMachine(ib.get(), packed)["main"](floats(1, 2))

    np.testing.assert_array_equal(result, floats(110, 240))


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
    vm = VirtualMachine(ib.get(), {"less": operator.lt, "add": operator.add})

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
    vm = VirtualMachine(factorial(), {"sub": operator.sub, "mul": modular})

    results = [vm["factorial"](n) for n in (0, 1, 5, 5000)]

    assert results == [1, 1, 120, 0]


def test_recursion_without_end_is_an_error() -> None:
    packed = {"sub": first, "mul": operator.mul}
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

    assert result == ((5, 7), 5)


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


# --- packed functions -----------------------------------------------------------------


def test_registered_functions_are_found_and_given_ones_go_before_them() -> None:
    @register_func("test.answer")
    def answer() -> int:
        return 42

    try:
        vm = VirtualMachine(one_call("test.answer", []))
        other = VirtualMachine(one_call("test.answer", []), {"test.answer": lambda: 43})
        with pytest.raises(ValueError, match=r"^the packed function 'test\.answer' is registered"):
            register_func("test.answer")(answer)
    finally:
        unregister_func("test.answer")

    assert (vm["main"](), other["main"]()) == (42, 43)


def test_results_of_packed_functions_become_what_kernels_take() -> None:
    x = np.arange(6.0).reshape(2, 3)

    result = VirtualMachine(one_call("turn", []), {"turn": lambda: [x.T, 1.5]})["main"]()

    assert type(result) is tuple
    assert result[0].flags.c_contiguous
    assert result[1] == 1.5
    np.testing.assert_array_equal(result[0], x.T)


def returning(value: Any) -> Callable[[], Any]:
    return lambda: value


def test_what_a_packed_function_returns_becomes_what_kernels_take() -> None:
    exe = one_call("f", [])
    returned = [np.float32(2), np.ones((2, 3)).T, np.ones(2, ">f4"), [np.ones(1), (1, 2)]]

    results = [VirtualMachine(exe, {"f": returning(r)})["main"]() for r in returned]

    scalar, transposed, swapped, fields = results
    np.testing.assert_array_equal(scalar, np.array(2, np.float32), strict=True)
    assert transposed.flags.c_contiguous
    np.testing.assert_array_equal(transposed, np.ones((3, 2)), strict=True)
    np.testing.assert_array_equal(swapped, np.ones(2, np.float32), strict=True)
    np.testing.assert_array_equal(fields[0], np.ones(1), strict=True)
    assert fields[1:] == ((1, 2),)


def test_the_linker_gives_the_kernels_for_a_number_of_threads() -> None:
    exe = one_call("kernel", [])

    def link(linked: Executable, threads: int | None) -> dict[str, Callable[..., Any]]:
        return {"kernel": lambda: threads if linked is exe else None}

    exe.linker = link

    result = VirtualMachine(exe, num_threads=3)["main"]()

    assert result == 3


def test_functions_that_are_nowhere_are_listed_before_anything_runs() -> None:
    ib = ExecBuilder()
    with ib.function("main"):
        ib.emit_call("vm.builtin.copy", [0])
        ib.emit_call("f")
        ib.emit_call("g", dst=ib.r(0))
        ib.emit_ret(ib.r(0))

    message = fails(lambda: VirtualMachine(ib.get()))

    assert message == (
        "no packed function f, g: pass it in packed=, or register it with register_func"
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
        "virtual machine stack, innermost last:\n"
        "  inner (tail call), instruction 0: call  check  in: %0  dst: %1"
    ]
    assert vm["main"](5) == 5


def test_two_threads_run_one_machine() -> None:
    vm = VirtualMachine(factorial(), {"sub": operator.sub, "mul": operator.mul})
    results: list[int] = []

    def run(n: int) -> None:
        results.append(vm["factorial"](n))

    threads = [threading.Thread(target=run, args=[n]) for n in range(9)]

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
        "section code: function 'main': instruction 0: vm.builtin.load_shape: "
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
