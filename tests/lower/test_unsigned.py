"""Integers without a sign, and casts of floats to integers, from script to machine code."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.errors import RunError, ScriptError
from relax_egraph.ir.dtypes import FLOATS, INTEGERS, converted
from relax_egraph.ir.expr import Constant, Var, const
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.script import parse, print_module
from relax_egraph.tir.stmt import PrimFunc
from tests.support.kernels import run

Array = np.ndarray[Any, Any]

UNSIGNED = ("uint8", "uint16", "uint32", "uint64")


def main(body: str, dtype: str, *, rank: int = 1) -> rx.IRModule:
    """``main(x, y)`` of tensors of `dtype` that gives `body`."""
    shape = '("n",)' if rank else "()"
    of = f'R.Tensor({shape}, "{dtype}")'
    return rx.parse(
        f"@R.function\ndef main(x: {of}, y: {of}):\n"
        f"    with R.dataflow():\n        gv = {body}\n        R.output(gv)\n    return gv\n"
    )


def compiled(module: rx.IRModule, *arrays: Array) -> Array:
    return rx.VirtualMachine(rx.build(rx.optimize(module)))["main"](*arrays)


def extremes(dtype: str) -> tuple[Array, Array]:
    """All pairs of numbers at which signs, halves and ends of `dtype` show."""
    most = int(np.iinfo(dtype).max)
    half = most // 2
    numbers = [0, 1, 2, 3, 7, half - 1, half, half + 1, half + 2, most - 1, most]
    x, y = np.meshgrid(np.array(numbers, dtype), np.array(numbers, dtype))
    return x.ravel(), y.ravel()


BINARY = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "floor_divide": np.floor_divide,
    "floor_mod": np.mod,
    "mod": np.fmod,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "less": np.less,
    "greater_equal": np.greater_equal,
    "not_equal": np.not_equal,
    "bitwise_xor": np.bitwise_xor,
    "left_shift": np.left_shift,
    "right_shift": np.right_shift,
}


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_arithmetic_wraps_and_compares_as_numpy(dtype: str) -> None:
    x, y = extremes(dtype)
    fields = [f"R.{name}(x, y)" for name in BINARY]
    lines = "".join(f"        v{k} = {f}\n" for k, f in enumerate(fields))
    names = ", ".join(f"v{k}" for k in range(len(fields)))
    of = f'R.Tensor(("n",), "{dtype}")'
    module = rx.parse(
        f"@R.function\ndef main(x: {of}, y: {of}):\n    with R.dataflow():\n{lines}"
        f"        R.output({names})\n    return ({names})\n"
    )

    results = rx.VirtualMachine(rx.build(rx.optimize(module)))["main"](x, y)

    with np.errstate(all="ignore"):
        for result, (name, function) in zip(results, BINARY.items(), strict=True):
            np.testing.assert_array_equal(result, function(x, y), name, strict=True)


def top(x: Array) -> Array:
    return np.sort(x)[:-4:-1]


def limited(x: Array) -> Array:
    return np.clip(x, 3, 200)


UNARY: dict[str, Callable[[Array], Any]] = {
    "R.sum(x)": lambda x: np.sum(x, dtype=x.dtype),
    "R.max(x)": np.max,
    "R.min(x)": np.min,
    "R.argmax(x)": np.argmax,
    "R.negative(x)": np.negative,
    "R.abs(x)": np.abs,
    "R.sign(x)": np.sign,
    "R.bitwise_not(x)": np.invert,
    "R.sort(x)": np.sort,
    "R.cumsum(x)": lambda x: np.cumsum(x, dtype=x.dtype),
    "R.clip(x, min=3.0, max=200.0)": limited,
    "R.topk(x, k=3, ret_type='values')": top,
}


@pytest.mark.parametrize("dtype", UNSIGNED)
@pytest.mark.parametrize("body", UNARY)
def test_functions_of_one_tensor_are_those_of_numpy(body: str, dtype: str) -> None:
    x, _ = extremes(dtype)

    result = compiled(main(body, dtype), x, x)

    np.testing.assert_array_equal(result, np.asarray(UNARY[body](x)), strict=True)


@pytest.mark.parametrize("dtype", UNSIGNED)
@pytest.mark.parametrize("other", [*INTEGERS, *FLOATS, "bool"])
def test_casts_keep_lower_bits_and_round_once(dtype: str, other: str) -> None:
    x, _ = extremes(dtype)

    result = compiled(main(f'R.astype(x, dtype="{other}")', dtype), x, x)

    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(result, x.astype(other), strict=True)


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_floats_beyond_an_integer_become_its_ends(source: str, dtype: str) -> None:
    ends = np.iinfo(dtype)
    numbers = [np.nan, np.inf, -np.inf, -0.75, 2.5, 2.0**80, -(2.0**80), float(ends.max) + 1]
    with np.errstate(over="ignore"):
        x = np.array(numbers).astype(source)

    result = compiled(main(f'R.astype(x, dtype="{dtype}")', source), x, x)

    expected = [0, ends.max, ends.min, 0, 2, ends.max, ends.min, ends.max]
    np.testing.assert_array_equal(result, np.array(expected, dtype), strict=True)
    np.testing.assert_array_equal(converted(x, dtype), result, strict=True)


def test_numbers_beyond_int64_are_written_and_read_back() -> None:
    module = main('R.add(x, R.const(18446744073709551615, "u64"))', "uint64")

    printed = print_module(module)

    assert 'R.const(18446744073709551615, "uint64")' in printed
    assert_structural_equal(parse(printed), module)
    np.testing.assert_array_equal(
        compiled(module, *[np.array([0, 5], np.uint64)] * 2), np.array([2**64 - 1, 4], np.uint64)
    )


def test_a_number_that_the_dtype_lacks_is_refused() -> None:
    with pytest.raises(ScriptError) as refused:
        main('R.add(x, R.const(-1, "uint32"))', "uint32")

    assert str(refused.value).startswith(
        "<script>:4:23: no tensor constant: Python integer -1 out of bounds for uint32"
    )


LOOPS = """
@I.ir_module
class Module:
    @T.prim_func
    def scale(x: T.Buffer(("n",), "uint64"), y: T.Buffer(("n",), "uint64")):
        n = T.int64()
        for i in T.vectorized(n):
            y[i] = T.max(x[i] // T.uint64(3), T.uint64(9223372036854775809)) - x[i]
"""


def test_loops_have_such_numbers() -> None:
    module = parse(LOOPS)
    x = np.array([0, 5, 2**63, 2**64 - 1], np.uint64)

    function = module["scale"]
    assert isinstance(function, PrimFunc)
    result = run(function, [x], (4,), n=4)

    assert_structural_equal(parse(print_module(module)), module)
    np.testing.assert_array_equal(result, np.maximum(x // 3, np.uint64(2**63 + 1)) - x)


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_programs_are_saved_with_their_constants(dtype: str, tmp_path: Path) -> None:
    most = int(np.iinfo(dtype).max)
    module = main(f'R.add(x, R.const([{most}, {most - 1}], "{dtype}"))', dtype)
    x = np.array([1, 3], dtype)
    rx.build(module).save(tmp_path / "add.rxe")

    machine = rx.VirtualMachine(rx.load(tmp_path / "add.rxe"))

    np.testing.assert_array_equal(machine["main"](x, x), np.array([0, 1], dtype), strict=True)
    np.testing.assert_array_equal(machine["main"](_Foreign(x), x), np.array([0, 1], dtype))
    with pytest.raises(RunError, match=f'expected R.Tensor\\(\\(n,\\), "{dtype}"\\)'):
        machine["main"](x.astype("int64"), x)


class _Foreign:
    """An array of which only DLPack is known."""

    def __init__(self, array: Array) -> None:
        self._array = array

    def __dlpack__(self, **how: Any) -> Any:
        return self._array.__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64"])
def test_no_rule_takes_a_difference_for_negative(dtype: str) -> None:
    """Rules know the values of constants as floats; these wrap."""
    module = main(f'R.maximum(x, R.subtract(R.const(1, "{dtype}"), R.const(3, "{dtype}")))', dtype)
    x = np.zeros(2, dtype)

    result = compiled(module, x, x)

    np.testing.assert_array_equal(result, np.full(2, np.iinfo(dtype).max - 1, dtype), strict=True)


def test_ways_through_wider_integers_are_cut() -> None:
    body = 'R.astype(R.astype(R.astype(x, dtype="uint32"), dtype="int64"), dtype="float32")'

    best = rx.optimize(main(body, "uint16"))

    assert 'R.astype(x, dtype="float32")' in best.script()
    assert '"int64"' not in best.script()


def test_a_constant_of_numpy_keeps_its_dtype() -> None:
    assert const(np.uint16(7)).struct_info == Constant(np.array(7, np.uint16)).struct_info
    assert Var("x", const(2**63).struct_info).struct_info == const(2**63, "uint64").struct_info
