"""Builtins on values that are no tensors: tagged values, generators, caches, kernels, messages."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from relax_egraph.base.tagged import Tagged
from relax_egraph.errors import RunError
from relax_egraph.vm import ExecBuilder, VirtualMachine, register_func
from relax_egraph.vm.builtins import BUILTINS
from relax_egraph.vm.machine import Engine
from relax_egraph.vm.registry import unregister_func
from tests.support.native import with_kernels

ENGINES: Sequence[Engine] = ("interpreter", "auto")


def builtin(name: str, *constants: Any) -> Callable[..., Any]:
    return BUILTINS[f"vm.builtin.{name}"].bind(*constants)


# --- tagged values ------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_a_list_is_summed_by_its_tags(engine: Engine) -> None:
    """``cons(head, tail)`` has tag 1, ``nil`` tag 0."""
    ib = ExecBuilder()
    with ib.function("total", 1):
        nil = ib.label()
        ib.emit_call("vm.builtin.get_tag", [ib.r(0)], dst=ib.r(1))
        ib.emit_call("vm.builtin.prim_equal", [ib.r(1), 1], dst=ib.r(1))
        ib.emit_call("vm.builtin.read_if_cond", [ib.r(1)], dst=ib.r(1))
        ib.emit_if(ib.r(1), nil)
        ib.emit_call("vm.builtin.get_field", [ib.r(0), 0], dst=ib.r(2))
        ib.emit_call("vm.builtin.get_field", [ib.r(0), 1], dst=ib.r(3))
        ib.emit_call("total", [ib.r(3)], dst=ib.r(3))
        ib.emit_call("add", [ib.r(2), ib.r(3)], dst=ib.r(4))
        ib.emit_ret(ib.r(4))
        ib.place(nil)
        ib.emit_ret(0)
    with ib.function("main", 2):
        ib.emit_call("vm.builtin.make_tagged", [0], dst=ib.r(2))
        ib.emit_call("vm.builtin.make_tagged", [1, ib.r(1), ib.r(2)], dst=ib.r(3))
        ib.emit_call("vm.builtin.make_tagged", [1, ib.r(0), ib.r(3)], dst=ib.r(4))
        ib.emit_call("total", [ib.r(4)], dst=ib.r(5))
        ib.emit_call("vm.builtin.make_tuple", [ib.r(4), ib.r(5)], dst=ib.r(6))
        ib.emit_ret(ib.r(6))
    vm = VirtualMachine(with_kernels(ib), {"add": operator.add}, engine=engine)

    whole, total = vm["main"](3, 4)

    assert whole == Tagged(1, (3, Tagged(1, (4, Tagged(0, ())))))
    assert total == 7


def test_a_field_that_is_not_there_is_an_error() -> None:
    with pytest.raises(RunError, match=r"vm\.builtin\.get_field: field 2 of 1"):
        builtin("get_field")(Tagged(0, (1,)), 2)


# --- random numbers -----------------------------------------------------------------------


def test_the_same_seed_gives_the_same_numbers_in_the_tensor_that_is_given() -> None:
    first, second = (builtin("rng_state")(7) for _ in range(2))
    out = np.zeros((3, 2), np.float32)

    result = builtin("rng_uniform")(first, out)

    expected = np.random.Generator(np.random.Philox(7)).random((3, 2), np.float32)
    assert result is out
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(builtin("rng_uniform")(second, np.zeros_like(out)), expected)
    assert not np.array_equal(builtin("rng_uniform")(first, np.zeros_like(out)), expected)


def test_normal_numbers_have_mean_and_deviation() -> None:
    out = builtin("rng_normal")(builtin("rng_state")(0), np.empty(10_000))

    np.testing.assert_allclose([out.mean(), out.std()], [0, 1], atol=0.03)


@pytest.mark.parametrize(
    ("out", "said"),
    [
        (np.zeros(2, np.int64), 'is R.Tensor((2,), "int64"), needs a tensor of float32 or float64'),
        (np.zeros((4, 4)).T[::2], "is read-only or not contiguous"),
        (np.broadcast_to(0.0, 3), "is read-only or not contiguous"),
    ],
)
def test_numbers_are_written_only_where_they_can_be(out: Any, said: str) -> None:
    with pytest.raises(RunError) as error:
        builtin("rng_normal")(builtin("rng_state")(0), out)

    assert str(error.value) == f"vm.builtin.rng_normal: operand out {said}"


# --- caches -------------------------------------------------------------------------------


@pytest.mark.parametrize("room", [0, 1, 5, 100])
def test_a_cache_holds_what_was_appended(room: int) -> None:
    rows = np.arange(60, dtype=np.float32).reshape(10, 2, 3)
    cache = builtin("kv_cache_create", "float32")((room, 2, 3))
    seen: list[Any] = []

    for part in (rows[:0], rows[:1], rows[1:4], rows[4:10]):
        assert builtin("kv_cache_append")(cache, part) is cache
        length = builtin("kv_cache_length")(cache)
        seen.append(builtin("kv_cache_view")(cache, (length, 2, 3)))

    for view, length in zip(seen, (0, 1, 4, 10), strict=True):
        np.testing.assert_array_equal(view, rows[:length])
        assert not view.flags.writeable


def test_rows_are_seldom_moved() -> None:
    cache, append = builtin("kv_cache_create", "float32")((1, 4)), builtin("kv_cache_append")
    row = np.ones((1, 4), np.float32)
    places = set[int]()

    for length in range(1, 1001):
        append(cache, row)
        places.add(builtin("kv_cache_view")(cache, (length, 4)).ctypes.data)

    assert len(places) <= 11  # 1, 2, 4 … 1024 rows of room


def test_other_rows_and_other_shapes_are_errors() -> None:
    cache = builtin("kv_cache_create", "float32")((4, 2))

    messages: list[str] = []
    for name, constants, values in (
        ("append", (), (cache, np.zeros((1, 3), np.float32))),
        ("append", (), (cache, np.zeros((1, 2)))),
        ("append", (), ((4, 2), np.zeros((1, 2)))),
        ("view", (), (cache, (1, 2))),
        ("create", ("float32",), ((-1, 2),)),
    ):
        with pytest.raises(RunError) as error:
            builtin(f"kv_cache_{name}", *constants)(*values)
        messages.append(str(error.value))

    of_builtin = "vm.builtin.kv_cache"
    assert messages == [
        f'{of_builtin}_append: operand x is R.Tensor((1, 3), "float32"), '
        'needs R.Tensor((_, 2), "float32")',
        f'{of_builtin}_append: operand x is R.Tensor((1, 2), "float64"), '
        'needs R.Tensor((_, 2), "float32")',
        f"{of_builtin}_append: operand cache is R.Shape((4, 2)), "
        "needs a cache from kv_cache_create",
        f'{of_builtin}_view: the rows are R.Tensor((0, 2), "float32"), needs (1, 2)',
        f"{of_builtin}_create: operand shape is R.Shape((-1, 2)), needs a shape of rank 1 or more",
    ]


# --- calls --------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_a_kernel_takes_its_integers_from_a_shape(engine: Engine) -> None:
    ib = ExecBuilder()
    with ib.function("main", 2):
        ib.emit_call("vm.builtin.shape_of", [ib.r(0)], dst=ib.r(2))
        kernel = ib.f("add")
        ib.emit_call("vm.builtin.call_tir_dyn", [kernel, ib.r(0), ib.r(0), ib.r(1), ib.r(2)])
        ib.emit_ret(ib.r(1))
    vm = VirtualMachine(with_kernels(ib), engine=engine)

    result = vm["main"](np.arange(4, dtype=np.float32), np.zeros(4, np.float32))

    np.testing.assert_array_equal(result, [0, 2, 4, 6])


def test_a_packed_function_gets_arrays_shapes_numbers_texts_and_objects() -> None:
    got: list[Any] = []

    @register_func("test.look")
    def look(*args: Any) -> list[Any]:
        got.extend(args)
        return [1, [2.5], args[-1]]

    thing = object()
    ib = ExecBuilder()
    with ib.function("main", 2):
        args = [ib.r(0), np.ones(2), (2, 3), 7, 1 << 70, 0.5, "text", ib.void_arg(), ib.r(1)]
        ib.emit_call("test.look", args, dst=ib.r(2))
        ib.emit_ret(ib.r(2))
    try:
        result = VirtualMachine(ib.get())["main"](x := np.zeros(3), thing)
    finally:
        unregister_func("test.look")

    assert got[0] is x
    assert [type(v) for v in got[:2]] == [np.ndarray, np.ndarray]
    assert got[2:] == [(2, 3), 7, 1 << 70, 0.5, "text", None, thing]
    assert result == (1, (2.5,), thing)


# --- shapes of what is computed -----------------------------------------------------------


def test_shapes_are_made_of_numbers_and_of_tensors() -> None:
    assert builtin("to_shape")(2, np.array(3)) == (2, 3)
    assert builtin("tensor_to_shape")(np.array([4, 5], np.int32)) == (4, 5)
    assert builtin("make_prim_value", "@0 * 4 + @1")([2, 1]) == 9
    assert builtin("null_value")() is None


@pytest.mark.parametrize("engine", ["interpreter", "native"])
def test_shapes_of_computed_numbers_have_a_native_form(engine: Engine) -> None:
    ib = ExecBuilder()
    with ib.function("main", 1):
        ib.emit_call("vm.builtin.check_tensor_info", [ib.r(0), "main", "x", 1, "float32"])
        ib.emit_call("vm.builtin.alloc_shape_heap", [1], dst=ib.r(1))
        ib.emit_call("vm.builtin.match_shape", [ib.r(0), ib.r(1), "main", "x", "n -> @0"])
        ib.emit_call("vm.builtin.make_prim_value", [ib.r(1), "@0 * 2 + 1"], dst=ib.r(2))
        ib.emit_call("vm.builtin.to_shape", [ib.r(2), 4, ib.r(2)], dst=ib.r(3))
        ib.emit_call("vm.builtin.null_value", [], dst=ib.r(4))
        ib.emit_call("vm.builtin.make_tuple", [ib.r(3), ib.r(4)], dst=ib.r(5))
        ib.emit_ret(ib.r(5))
    main = VirtualMachine(with_kernels(ib), engine=engine)["main"]

    assert [main(np.zeros(n, np.float32)) for n in (0, 3)] == [((1, 4, 1), None), ((7, 4, 7), None)]


# --- messages -----------------------------------------------------------------------------


def test_messages_show_values(capsys: pytest.CaptureFixture[str]) -> None:
    show = builtin("print")

    show("x is {} of {}: {{}}", np.array([1, 2]), (2,))
    show("", 3, "text", (1, np.array(2)), object())

    assert capsys.readouterr().out == (
        "x is [1 2] of (2,): {}\n3 text (1, 2) an object of type object\n"
    )


@pytest.mark.parametrize(
    ("format", "said"),
    [
        ("{", "Single '{' encountered in format string"),
        ("{} {}", "the format '{} {}' has 2 fields, got 1 values"),
        ("{0}", "the format '{0}' has a field that is not {}"),
        ("{0.__class__}", "the format '{0.__class__}' has a field that is not {}"),
        ("{:>9999999999}", "the format '{:>9999999999}' has a field that is not {}"),
    ],
)
def test_formats_are_only_places_for_values(format: str, said: str) -> None:
    with pytest.raises(RunError) as error:
        builtin("print")(format, 1)

    assert str(error.value) == f"vm.builtin.print: {said}"


def test_an_assertion_fails_with_the_message_and_where_it_is() -> None:
    ib = ExecBuilder()
    with ib.function("main", 2):
        ib.emit_call("vm.builtin.assert", [ib.r(0), "x is {}, too large", ib.r(1)])
        ib.emit_ret(ib.r(1))
    main = VirtualMachine(ib.get())["main"]

    with pytest.raises(RunError) as error:
        main(np.array(False), 7)

    assert main(np.array(True), 7) == 7
    assert str(error.value) == "assertion failed: x is 7, too large"
    assert "main, instruction 0: call  vm.builtin.assert  in: %0" in error.value.__notes__[0]


# --- checks -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "constants", "right", "wrong", "got"),
    [
        ("check_prim_info", ("float64",), 2.5, 2, "2"),
        ("check_prim_info", ("bool",), True, 1, "1"),
        ("check_string_info", (), "text", 3, "3"),
        ("check_func_info", (), len, (1,), "R.Shape((1,))"),
    ],
)
def test_numbers_texts_and_functions_are_checked(
    name: str, constants: tuple[str, ...], right: Any, wrong: Any, got: str
) -> None:
    check = builtin(name, "main: parameter x", "something", *constants)

    with pytest.raises(RunError) as error:
        check(wrong)

    assert check(right) is None
    assert str(error.value) == f"main: parameter x: expected something, got {got}"


@pytest.mark.parametrize("engine", ENGINES)
def test_an_upper_bound_holds_in_both_engines(engine: Engine) -> None:
    ib = ExecBuilder()
    with ib.function("main", 1):
        ib.emit_call("vm.builtin.shape_of", [ib.r(0)], dst=ib.r(1))
        ib.emit_call("vm.builtin.alloc_shape_heap", [1], dst=ib.r(2))
        ib.emit_call("vm.builtin.match_shape", [ib.r(0), ib.r(2), "main", "x", "n -> @0"])
        ib.emit_call("vm.builtin.load_prim", [ib.r(2), 0], dst=ib.r(3))
        ib.emit_call("vm.builtin.check_upper_bound", [ib.r(3), 512, "main: n"])
        ib.emit_ret(ib.r(0))
    main = VirtualMachine(with_kernels(ib), engine=engine)["main"]

    with pytest.raises(RunError) as error:
        main(np.zeros(513, np.float32))

    assert main(x := np.zeros(512, np.float32)) is x
    assert str(error.value) == "main: n: expected <= 512, got 513"
