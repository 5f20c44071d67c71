"""The native engine: what it takes, what it leaves to the interpreter, what it gives back."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build, parse
from relax_egraph.errors import RunError
from relax_egraph.vm import ExecBuilder, Executable
from tests.support.native import MODULE, W, machines, main_of, outcome, plain, with_kernels, x_of

# --- results --------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [0, 1, 3, 5000])
def test_results_are_tensors_views_arguments_and_shapes(rows: int) -> None:
    x = x_of(rows)

    u, flat, same, again, shape = main_of(MODULE)(x, W)

    np.testing.assert_array_equal(u, -np.square(x + W))
    np.testing.assert_array_equal(flat, x.ravel())
    assert flat.base is x.base
    assert same is x
    assert again is u
    assert shape == (rows, 4)


def test_a_view_of_what_is_read_only_is_read_only() -> None:
    x = x_of(3)
    x.setflags(write=False)

    _, flat, *_ = main_of(MODULE)(x, W)

    assert not flat.flags.writeable


def test_a_result_is_new_in_every_call() -> None:
    main = main_of(MODULE)

    first, second = main(x_of(3), W), main(x_of(3) + 1, W)

    np.testing.assert_array_equal(first[0], -np.square(x_of(3) + W))
    assert not np.shares_memory(first[0], second[0])


def test_large_results_use_the_memory_of_those_that_were_dropped() -> None:
    main = main_of(MODULE)
    x = x_of(100_000)

    first = main(x, W)[0].ctypes.data
    held = main(x, W)[0]
    third = main(x, W)[0]

    assert held.ctypes.data == first
    assert first % 64 == 0
    assert not np.shares_memory(held, third)


# --- what is left to the interpreter --------------------------------------------------


def cases() -> dict[str, tuple[list[Any], dict[str, Any]]]:
    x = x_of(3)
    foreign = x.astype(x.dtype.newbyteorder())
    misaligned = np.frombuffer(bytes(1) + x.tobytes(), np.uint8)[1:].view(np.float32)
    return {
        "names": ([x], {"w": W}),
        "names only": ([], {"w": W, "x": x}),
        "too few": ([x], {}),
        "too many": ([x, W, W], {}),
        "twice": ([x, W], {"x": x}),
        "rank": ([x[0], W], {}),
        "dtype": ([x.astype(np.float64), W], {}),
        "extent": ([x, W[:3]], {}),
        "layout": ([np.asfortranarray(x), W], {}),
        "strides": ([np.repeat(x, 2, axis=0)[::2], W], {}),
        "byte order": ([foreign, W], {}),
        "alignment": ([misaligned.reshape(3, 4), W], {}),
        "a subclass": ([x.view(np.recarray), W], {}),
        "a list": ([x.tolist(), W], {}),
        "no array": ([None, W], {}),
        "DLPack": ([_Exported(x), W], {}),
    }


class _Exported:
    """An array of another library."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


@pytest.mark.parametrize("what", cases())
def test_what_is_unusual_is_done_by_the_interpreter(what: str) -> None:
    args, named = cases()[what]
    vms = machines(build(parse(MODULE)))

    expected, found = (outcome(vm, *args, **named) for vm in vms.values())

    assert found == expected


def test_after_an_error_the_machine_is_usable() -> None:
    main = main_of(MODULE)

    with pytest.raises(RunError, match=r"dimension 0 is 3, needs 4"):
        main(x_of(3), W[:3])

    np.testing.assert_array_equal(main(x_of(3), W)[0], -np.square(x_of(3) + W))


def test_memory_that_there_is_not_is_an_error() -> None:
    ib = ExecBuilder()
    with ib.function("main", 1):
        ib.emit_call("vm.builtin.check_tensor_info", [ib.r(0), "x", "t", 1, "float32"])
        ib.emit_call("vm.builtin.alloc_shape_heap", [2], ib.r(1))
        ib.emit_call("vm.builtin.match_shape", [ib.r(0), ib.r(1), "x", "t", "n -> @0"])
        ib.emit_call("vm.builtin.compute_shapes", [ib.r(1), 1, "@0 * 288230376151711744"])
        ib.emit_call("vm.builtin.load_prim", [ib.r(1), 1], ib.r(2))
        ib.emit_call("vm.builtin.alloc_storage", [ib.vm_state(), ib.r(2)], ib.r(2))
        ib.emit_call("vm.builtin.make_shape", [ib.r(1), "@0"], ib.r(3))
        ib.emit_call("vm.builtin.alloc_tensor", [ib.r(2), 0, ib.r(3), "float32"], ib.r(3))
        ib.emit_call("vm.builtin.load_prim", [ib.r(1), 0], ib.r(1))
        ib.emit_call("add", [ib.r(0), ib.r(0), ib.r(3), ib.r(1)])
        ib.emit_ret(ib.r(0))
    vms = machines(with_kernels(ib))

    outcomes = [[outcome(vm, W[:n]) for vm in vms.values()] for n in (4, 3, 0)]

    assert "native" not in str(outcomes)
    for expected, found in outcomes:
        assert found == expected
    assert outcomes[0][0][1] == "a storage of 1152921504606846976 bytes cannot be allocated"


# --- what engines there are -----------------------------------------------------------


@pytest.mark.parametrize(
    ("callee", "reason"),
    [("test.own", "a call of test.own"), ("vm.builtin.unique", "a call of vm.builtin.unique")],
)
def test_native_says_what_has_no_native_form(callee: str, reason: str) -> None:
    ib = ExecBuilder()
    with ib.function("main", 1):
        ib.emit_call(callee, [ib.r(0)], ib.r(1))
        ib.emit_ret(ib.r(1))

    with pytest.raises(RunError) as error:
        VirtualMachine(with_kernels(ib), {"test.own": len}, engine="native")

    assert str(error.value) == f"no native form: function 'main': {reason}"


def test_native_needs_a_driver() -> None:
    exe = replace(build(parse(MODULE)), driver=None)

    with pytest.raises(RunError, match="no native engine: the executable was not built or loaded"):
        VirtualMachine(exe, engine="native")
    assert VirtualMachine(exe)["main"](x_of(1), W)[4] == (1, 4)


def test_a_function_that_replaces_a_kernel_or_a_builtin_is_called() -> None:
    ib = ExecBuilder()
    with ib.function("main", 1):
        ib.emit_call("vm.builtin.shape_of", [ib.r(0)], ib.r(1))
        ib.emit_call("add", [ib.r(0), ib.r(0), ib.r(0), 4])
        ib.emit_ret(ib.r(1))
    seen: list[Any] = []

    def add(*args: Any) -> None:
        seen.append(args)

    packed = {"vm.builtin.shape_of": len, "add": add}
    result = VirtualMachine(with_kernels(ib), packed)["main"](W)

    assert result == 4
    assert len(seen) == 1


# --- in place -------------------------------------------------------------------------


def doubling(*, check: bool) -> Executable:
    """``main(x)`` doubles `x` in place; then, with `check`, it wants `x` to have 3 elements."""
    ib = ExecBuilder()
    with ib.function("main", 1, ["x"]):
        ib.emit_call("vm.builtin.alloc_shape_heap", [1], ib.r(1))
        ib.emit_call("vm.builtin.check_tensor_info", [ib.r(0), "x", "t", 1, "float32"])
        ib.emit_call("vm.builtin.match_shape", [ib.r(0), ib.r(1), "x", "t", "n -> @0"])
        ib.emit_call("vm.builtin.writable", [ib.r(0)], ib.r(2))
        ib.emit_call("vm.builtin.load_prim", [ib.r(1), 0], ib.r(3))
        ib.emit_call("double", [ib.r(2), ib.r(3)])
        if check:
            ib.emit_call("vm.builtin.match_shape", [ib.r(2), ib.r(1), "x", "t", "3"])
        ib.emit_ret(ib.r(2))
    return with_kernels(ib)


def test_an_argument_is_written_in_place_and_returned() -> None:
    x = W.copy()

    result = VirtualMachine(doubling(check=False), engine="native")["main"](x)

    assert result is x
    np.testing.assert_array_equal(x, 2 * W)


def test_what_is_read_only_is_copied_by_the_interpreter() -> None:
    x = W.copy()
    x.setflags(write=False)

    result = VirtualMachine(doubling(check=False), engine="native")["main"](x)

    np.testing.assert_array_equal(result, 2 * W)
    np.testing.assert_array_equal(x, W)


def test_an_argument_is_written_once_even_if_a_check_fails() -> None:
    vms = machines(doubling(check=True))

    expected, found = (outcome(vm, W) for vm in vms.values())

    assert found == expected
    assert found[-1] == plain([2 * W])


# --- functions that are native in part ------------------------------------------------


def test_packed_functions_break_a_function_into_segments() -> None:
    ib = ExecBuilder()
    with ib.function("main", 1, ["x"]):
        ib.emit_call("vm.builtin.alloc_shape_heap", [2], ib.r(1))
        ib.emit_call("vm.builtin.check_tensor_info", [ib.r(0), "x", "t", 1, "float32"])
        ib.emit_call("vm.builtin.match_shape", [ib.r(0), ib.r(1), "x", "t", "n -> @0"])
        ib.emit_call("vm.builtin.compute_shapes", [ib.r(1), 1, "@0 * 4"])
        ib.emit_call("test.seen", [ib.r(1)])
        ib.emit_call("vm.builtin.load_prim", [ib.r(1), 1], ib.r(2))
        ib.emit_call("vm.builtin.alloc_storage", [ib.vm_state(), ib.r(2)], ib.r(2))
        ib.emit_call("vm.builtin.make_shape", [ib.r(1), "@0"], ib.r(3))
        ib.emit_call("vm.builtin.alloc_tensor", [ib.r(2), 0, ib.r(3), "float32"], ib.r(4))
        ib.emit_call("vm.builtin.load_prim", [ib.r(1), 0], ib.r(5))
        ib.emit_call("add", [ib.r(0), ib.r(0), ib.r(4), ib.r(5)])
        ib.emit_call("vm.builtin.compute_shapes", [ib.r(1), 0, "@0 + 1"])
        ib.emit_call("test.seen", [ib.r(4)], ib.r(6))
        ib.emit_call("vm.builtin.make_tuple", [ib.r(6), ib.r(3), ib.r(2), ib.r(1)], ib.r(6))
        ib.emit_ret(ib.r(6))
    seen: list[Any] = []

    def look(x: Any) -> Any:
        seen.append(plain(x))
        return x

    results = [outcome(vm, W) for vm in machines(with_kernels(ib), {"test.seen": look}).values()]

    assert results[0] == results[1]
    assert seen[:2] == seen[2:] == [plain([4, 16]), plain(2 * W)]


def test_an_exception_of_a_packed_function_arrives_with_its_place() -> None:
    ib = ExecBuilder()
    with ib.function("main", 1, ["x"]):
        for _ in range(4):
            ib.emit_call("vm.builtin.copy", [ib.r(0)], ib.r(1))
        ib.emit_call("test.fails", [ib.r(1)], ib.r(2))
        ib.emit_ret(ib.r(2))

    def fails(_: Any) -> Any:
        raise ValueError("no")

    vm = VirtualMachine(with_kernels(ib), {"test.fails": fails})

    with pytest.raises(ValueError, match="no") as error:
        vm["main"](W)
    assert error.value.__notes__ == [
        "virtual machine stack, innermost last:\n"
        "  main, instruction 4: call  test.fails  in: %1  dst: %2"
    ]
