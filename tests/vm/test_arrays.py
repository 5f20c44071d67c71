"""Arrays that go in and come out: dtypes by any name, any layout, other libraries, bfloat16."""

from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.errors import RunError
from relax_egraph.ir import BlockBuilder, Var, call, const, tensor
from relax_egraph.ir.dtypes import DTYPES
from relax_egraph.vm.dlpack import BFLOAT, from_dlpack, head_of

TEXT = """
@R.function
def main(x: R.Tensor({shape}, "{dtype}")):
    with R.dataflow():
        gv = R.{operator}(x, x)
        R.output(gv)
    return gv
"""

ENGINES = ("native", "interpreter")


def machine(
    dtype: str, shape: str = '("n", 4)', engine: Any = "native", operator: str = "maximum"
) -> Any:
    module = rx.parse(TEXT.format(dtype=dtype, shape=shape, operator=operator))
    return rx.VirtualMachine(rx.build(module), engine=engine)["main"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_dtype_goes_by_all_its_names_in_both_byte_orders(engine: str) -> None:
    """Types of C (``longlong``, ``intc``, …) and texts name the same dtypes."""
    codes = np.typecodes["AllInteger"] + np.typecodes["Float"] + "?"
    calls: dict[str, Any] = {}
    for dtype in map(np.dtype, codes):
        if dtype.name not in DTYPES:
            continue
        call = calls.setdefault(dtype.name, machine(dtype.name, engine=engine))
        for order in ("<", ">", "="):
            x = np.arange(12).reshape(3, 4).astype(dtype).astype(dtype.newbyteorder(order))
            result = call(x)
            assert result.dtype == np.dtype(dtype.name), dtype
            np.testing.assert_array_equal(result, x)

    assert calls.keys() == set(DTYPES) - {"bfloat16"}


def test_a_dtype_by_another_name_is_not_copied() -> None:
    shown: list[np.ndarray[Any, Any]] = []
    module = rx.parse("""
@R.function
def main(x: R.Tensor((3,), "int64")):
    gv: R.Object = R.call_packed("show", x)
    return x
""")
    x = np.arange(3, dtype=np.longlong)

    rx.VirtualMachine(rx.build(module), {"show": shown.append})["main"](x)

    assert np.shares_memory(shown[0], x)


@pytest.mark.parametrize("engine", ENGINES)
def test_constants_go_by_all_names_too(engine: Any) -> None:
    builder, x = BlockBuilder(), Var("x", tensor((3,), "int64"))
    with builder.function("main", [x]):
        with builder.dataflow():
            total = builder.emit_output(call("add", x, const(np.arange(3, dtype=np.longlong))))
        builder.emit_func_output(total)
    vm = rx.VirtualMachine(rx.build(builder.get()), engine=engine)

    assert vm["main"](np.arange(3)).tolist() == [0, 2, 4]


X = np.arange(16, dtype=np.float32).reshape(4, 4)


class AsArray:
    def __init__(self, array: Any) -> None:
        self._array = array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self._array


@pytest.mark.parametrize("engine", ENGINES)
def test_arrays_of_any_layout(engine: str) -> None:
    fixed = X.copy()
    fixed.setflags(write=False)
    unaligned = np.frombuffer(b"\0" + X.tobytes(), np.float32, 16, 1).reshape(4, 4)
    call = machine("float32", engine=engine)

    for x in (X, X.T, X[::2], X[::-1], X[:0], np.asfortranarray(X), fixed, unaligned, AsArray(X)):
        np.testing.assert_array_equal(call(x), np.asarray(x))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("value", [np.float32(3), np.array(3, np.float32), np.array(3, ">f4")])
def test_arrays_of_rank_0(engine: str, value: Any) -> None:
    result = machine("float32", "()", engine)(value)

    assert (result.shape, result.item()) == ((), 3)


def test_what_a_mask_hides_is_not_read() -> None:
    call = machine("float32")

    with pytest.raises(RunError) as error:
        call(np.ma.masked_array(X, X > 3))

    assert str(error.value) == "main: parameter x: a masked array: fill it, by x.filled(0)"
    np.testing.assert_array_equal(call(np.ma.masked_array(X)), X)


def test_memory_that_is_to_be_negated_is() -> None:
    """torch marks such tensors, and does not say so through DLPack."""

    class Negated:
        def __dlpack__(self, **options: Any) -> Any:
            return X.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return X.__dlpack_device__()

        def resolve_neg(self) -> Any:
            return -X

    np.testing.assert_array_equal(machine("float32")(Negated()), -X)


# --- bfloat16, of which numpy exports nothing ------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("shape", [(3, 4), (0, 4)])
@pytest.mark.parametrize("options", [{}, {"max_version": (1, 0)}, {"copy": True}])
def test_results_of_bfloat16_are_exported(
    engine: str, shape: tuple[int, ...], options: dict[str, Any]
) -> None:
    x = np.arange(np.prod(shape)).reshape(shape).astype("bfloat16")
    result = machine("bfloat16", engine=engine)(x)

    capsule = result.__dlpack__(**options)  # which the head is in
    head = head_of(capsule)
    again = from_dlpack(result)

    assert (head.code, head.bits, head.lanes, head.ndim) == (BFLOAT, 16, 1, 2)
    assert result.__dlpack_device__() == (1, 0)
    assert options.get("copy") or head.data in (None, result.ctypes.data)
    assert again.dtype == np.dtype("bfloat16")
    np.testing.assert_array_equal(again.astype("float32"), x.astype("float32"))


def test_parts_of_such_results_are_exported_and_what_is_made_of_them() -> None:
    result = machine("bfloat16")(np.arange(12).reshape(3, 4).astype("bfloat16"))

    transposed, widened = result.T, result.astype("float32")

    np.testing.assert_array_equal(from_dlpack(transposed), np.asarray(transposed))
    np.testing.assert_array_equal(np.from_dlpack(widened), np.asarray(widened))


def test_such_results_are_arguments_again() -> None:
    call = machine("bfloat16", operator="add")

    np.testing.assert_array_equal(call(call(np.ones((2, 4), "bfloat16"))), 4)


def test_tuples_and_closures_give_such_results_too() -> None:
    module = rx.parse("""
@R.function
def main(x: R.Tensor((2,), "bfloat16"), y: R.Tensor((2,), "float32")):
    gv = R.add(x, x)
    return (gv, (R.shape([2]), y))
""")
    vm = rx.VirtualMachine(rx.build(module))
    x, y = np.ones(2, "bfloat16"), np.ones(2, np.float32)

    total, (shape, same) = vm["main"](x, y)
    vm.set_input("main", x, y)
    vm.invoke_stateful("main")

    assert from_dlpack(total).tolist() == [2, 2]
    assert (shape, type(same)) == ((2,), np.ndarray)
    assert from_dlpack(vm.get_outputs("main")[0]).tolist() == [2, 2]
