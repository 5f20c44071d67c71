"""What the interpreter takes for arguments, and what it makes of them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from relax_egraph.errors import RunError
from relax_egraph.ir.dtypes import STORED
from relax_egraph.vm import ExecBuilder, VirtualMachine, dlpack


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


class Brain:
    """A tensor of bfloat16 of another library: numpy's own DLPack has no such elements."""

    def __init__(self, array: Any) -> None:
        self._bits = array.view(np.uint16)

    def __dlpack__(self, **kwargs: Any) -> Any:
        capsule = self._bits.__dlpack__()
        dlpack.head_of(capsule).code = dlpack.BFLOAT
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._bits.__dlpack_device__()


def test_bfloat16_of_another_library_is_read_in_place() -> None:
    x = np.array([[1, -2.5, 3e38], [np.inf, 0, 1e-40]], "bfloat16")

    result, turned = identity()(Brain(x)), identity()(Brain(x.T))

    np.testing.assert_array_equal(result, x, strict=True)
    assert np.shares_memory(result, x)
    np.testing.assert_array_equal(turned, x.T, strict=True)


@pytest.mark.parametrize("dtype", STORED)
def test_storage_types_are_arguments_like_others(dtype: str) -> None:
    x = np.arange(6).astype(dtype).reshape(2, 3)

    foreign = x.astype(x.dtype.newbyteorder(">"))
    results = [identity()(given) for given in (x, x.T, x[0, 1], foreign)]

    for result, given in zip(results, (x, x.T, x[0, 1], x), strict=True):
        np.testing.assert_array_equal(result, np.asarray(given), strict=True)
        assert result.dtype == dtype
