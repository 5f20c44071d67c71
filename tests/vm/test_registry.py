"""Packed functions of the user, by name: what they get, what becomes of their results."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from relax_egraph.vm import ExecBuilder, VirtualMachine, register_func
from relax_egraph.vm.registry import registered, registered_names, unregister_func
from tests.vm.test_arguments import Elsewhere

NAME = "test.registry"


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    before = registered_names()
    yield
    unregister_func(NAME)
    assert registered_names() == before


def calling(*args: Any) -> VirtualMachine:
    """``main(x)`` is what the registered function returns for `x` and these constants."""
    ib = ExecBuilder()
    with ib.function("main", 1, ["x"]):
        ib.emit_call(NAME, [ib.r(0), *args], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    return VirtualMachine(ib.get())


@pytest.mark.parametrize(
    "value",
    [np.ones(2, np.float32), (2, 3), 7, "text", 1.5, None, {"any": "object"}, ((1, 2), "text")],
)
def test_it_gets_values_as_they_are_and_so_does_the_caller(value: Any) -> None:
    got: list[Any] = []

    @register_func(NAME)
    def keep(x: Any) -> Any:
        got.append(x)
        return x

    result = calling()["main"](value)

    assert got[0] is value
    assert result is value
    assert registered(NAME) is keep


def test_it_gets_constants_that_cannot_be_written() -> None:
    @register_func(NAME)
    def write(x: Any, constant: Any, shape: Any, count: int, name: str) -> Any:
        assert (shape, count, name) == ((2, 3), 4, "a name")
        constant[0] = x
        return constant

    main = calling(np.zeros(3), (2, 3), 4, "a name")["main"]

    with pytest.raises(ValueError, match="read-only"):
        main(1.0)


def test_results_of_other_libraries_and_layouts_become_arrays() -> None:
    @register_func(NAME)
    def turn(x: Any) -> Any:
        return [Elsewhere(x), x.T, np.float32(2), (3, 4)]

    x = np.arange(6.0).reshape(2, 3)
    same, turned, scalar, shape = calling()["main"](x)

    assert same.ctypes.data == x.ctypes.data
    assert turned.flags.c_contiguous
    np.testing.assert_array_equal(turned, x.T)
    np.testing.assert_array_equal(scalar, np.array(2, np.float32), strict=True)
    assert shape == (3, 4)


def test_a_name_is_taken_once_unless_it_is_overridden() -> None:
    register_func(NAME)(min)
    first = calling(0)

    with pytest.raises(ValueError, match=r"^the packed function 'test\.registry' is registered"):
        register_func(NAME)(max)
    register_func(NAME, override=True)(max)

    assert (first["main"](5), calling(0)["main"](5)) == (0, 5)


def test_names_are_listed_and_forgotten_while_machines_keep_them() -> None:
    register_func(NAME)(abs)
    vm = calling()
    listed = registered_names()
    unregister_func(NAME)

    assert NAME in listed
    assert list(listed) == sorted(listed)
    assert NAME not in registered_names()
    assert vm["main"](-3) == 3
    with pytest.raises(ValueError, match=r"^no packed function test\.registry: pass it"):
        calling()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("vm.builtin.copy", "names that begin with vm.builtin. are the machine's"),
        ("vm.builtin.mine", "names that begin with vm.builtin. are the machine's"),
        ("", "it is empty"),
    ],
)
def test_names_that_cannot_be(name: str, why: str) -> None:
    with pytest.raises(ValueError, match="is no name") as error:
        register_func(name, override=True)

    assert str(error.value) == f"{name!r} is no name for a packed function: {why}"


def test_what_cannot_be_called_is_not_registered() -> None:
    with pytest.raises(TypeError) as error:
        register_func(NAME)(3)  # pyright: ignore[reportArgumentType]

    assert str(error.value) == "'test.registry' is to be a packed function, and 3 is no callable"
