"""Elementwise operators: what they refuse, their values in numbers, and how they are written."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import relax_egraph as rx
from relax_egraph.errors import IllTyped, RunError
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.expr import Attr, Call, Var
from relax_egraph.ir.op import OPS, infer
from relax_egraph.ir.struct_info import TensorStructInfo, tensor

Array = npt.NDArray[Any]

FLOAT, INT, BOOL = (tensor((2, 3), dtype) for dtype in ("float32", "int32", "bool"))
UNKNOWN = tensor(None, None)

ONE_SHAPE = """
@R.function
def main(
    x: R.Tensor((1, 2), "float32"), y: R.Tensor(("n", 2), "float32")
) -> R.Tensor((1, 2), "float32"):
    return R.ewise_add(x, y)
"""

REFUSED: list[tuple[str, tuple[TensorStructInfo, ...], dict[str, Attr], str]] = [
    ("sin", (INT,), {}, 'R.sin of R.Tensor((2, 3), "int32"): needs a floating-point tensor'),
    (
        "atan2",
        (FLOAT, INT),
        {},
        'R.atan2 of R.Tensor((2, 3), "int32"): needs a floating-point tensor',
    ),
    ("sign", (BOOL,), {}, 'R.sign of R.Tensor((2, 3), "bool"): needs a tensor of numbers'),
    ("mod", (BOOL, BOOL), {}, 'R.mod of R.Tensor((2, 3), "bool"): needs a tensor of numbers'),
    (
        "bitwise_not",
        (FLOAT,),
        {},
        'R.bitwise_not of R.Tensor((2, 3), "float32"): needs a tensor of integers or booleans',
    ),
    (
        "left_shift",
        (BOOL, BOOL),
        {},
        'R.left_shift of R.Tensor((2, 3), "bool"): needs a tensor of integers',
    ),
    (
        "bitwise_or",
        (INT, BOOL),
        {},
        'R.bitwise_or of R.Tensor((2, 3), "int32"), R.Tensor((2, 3), "bool"): '
        "needs operands of one dtype",
    ),
    (
        "logical_and",
        (BOOL, INT),
        {},
        'R.logical_and of R.Tensor((2, 3), "int32"): needs a boolean tensor',
    ),
    (
        "clip",
        (INT,),
        {"min": 0.0, "max": 2.5},
        'R.clip of R.Tensor((2, 3), "int32"): a bound is 2.5, needs a whole number',
    ),
    (
        "clip",
        (FLOAT,),
        {"min": np.nan, "max": 1.0},
        'R.clip of R.Tensor((2, 3), "float32"): a bound is nan, needs a number',
    ),
    ("clip", (FLOAT,), {"min": 0.0}, "R.clip needs the attribute 'max'"),
    (
        "nn.softplus",
        (FLOAT,),
        {"beta": 0.0},
        'R.nn.softplus of R.Tensor((2, 3), "float32"): beta is 0, needs another number',
    ),
    (
        "nn.prelu",
        (FLOAT, tensor((2,), "float32")),
        {},
        'R.nn.prelu of R.Tensor((2, 3), "float32"), R.Tensor((2,), "float32"): '
        "alpha has shape (2,), needs (3,)",
    ),
    (
        "nn.prelu",
        (FLOAT, FLOAT),
        {"axis": 0},
        'R.nn.prelu of R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32"): '
        "alpha has rank 2, needs 1",
    ),
]


@pytest.mark.parametrize(("name", "infos", "attrs", "message"), REFUSED)
def test_what_is_proven_wrong_is_refused(
    name: str, infos: tuple[TensorStructInfo, ...], attrs: dict[str, Attr], message: str
) -> None:
    args = tuple(Var(f"x{k}", info) for k, info in enumerate(infos))

    with pytest.raises(IllTyped) as raised:
        infer(Call(OPS[name], args, attrs))

    assert str(raised.value) == message


def test_what_is_unknown_is_allowed() -> None:
    x, alpha = Var("x", UNKNOWN), Var("alpha", UNKNOWN)

    clipped = infer(Call(OPS["clip"], (x,), {"min": 0.0, "max": 0.5}))
    sloped = infer(Call(OPS["nn.prelu"], (x, alpha), {"axis": 7}))
    both = infer(Call(OPS["logical_or"], (x, alpha), {}))

    assert (clipped, sloped, both) == (UNKNOWN, UNKNOWN, tensor(None, "bool"))


def test_the_axis_of_prelu_is_one_of_the_data() -> None:
    x = Var("x", tensor((4,), "float32"))

    with pytest.raises(IllTyped) as raised:
        infer(Call(OPS["nn.prelu"], (x, x), {}))

    assert (
        str(raised.value) == 'R.nn.prelu of R.Tensor((4,), "float32"): axis 1 is outside of rank 1'
    )


def test_what_is_of_one_shape_by_claim_only_is_checked_at_run_time() -> None:
    x, y = np.ones((1, 2), np.float32), np.ones((3, 2), np.float32)

    with pytest.raises(RunError) as raised:
        apply_op(OPS["ewise_add"], (x, y), {})
    vm = rx.VirtualMachine(rx.build(rx.parse(ONE_SHAPE)))
    with pytest.raises(RunError):
        vm["main"](x, y)

    np.testing.assert_array_equal(vm["main"](x, x), x + x)
    assert str(raised.value) == (
        'R.ewise_add of R.Tensor((1, 2), "float32"), R.Tensor((3, 2), "float32"): '
        "needs operands of one shape"
    )


def test_bounds_of_integers_that_are_told_at_run_time_are_whole() -> None:
    x = np.arange(3, dtype=np.int32)

    with pytest.raises(RunError) as raised:
        apply_op(OPS["clip"], (x,), {"min": 0.5, "max": 2.0})

    assert str(raised.value) == (
        'R.clip of R.Tensor((3,), "int32"): a bound is 0.5, needs a whole number'
    )


INF, NAN = np.inf, np.nan
VALUES: list[tuple[str, tuple[list[Any], ...], str, dict[str, Attr], list[Any]]] = [
    ("round", ([0.5, 1.5, -2.5, 2.4, INF, NAN],), "float32", {}, [0, 2, -2, 2, INF, NAN]),
    ("trunc", ([1.7, -1.7, -INF],), "float64", {}, [1, -1, -INF]),
    ("ceil", ([1.2, -1.2, 3.0],), "float32", {}, [2, -1, 3]),
    ("floor", ([7, -7],), "int32", {}, [7, -7]),
    ("sign", ([-2.5, 0.0, INF, NAN],), "float32", {}, [-1, 0, 1, NAN]),
    ("sign", ([0, 7],), "uint8", {}, [0, 1]),
    ("square", ([-3, 100],), "int8", {}, [9, 16]),
    ("isfinite", ([1.0, INF, NAN],), "float32", {}, [True, False, False]),
    ("isinf", ([1.0, -INF, NAN],), "float64", {}, [False, True, False]),
    ("isnan", ([1.0, -INF, NAN],), "float32", {}, [False, False, True]),
    ("isnan", ([1, 2],), "int32", {}, [False, False]),
    ("clip", ([-3.0, 0.25, 9.0, NAN],), "float32", {"min": 0.0, "max": 6.0}, [0, 0.25, 6, NAN]),
    ("clip", ([-100, 0, 100],), "int8", {"min": -INF, "max": 300.0}, [-100, 0, 100]),
    ("clip", ([1, 5],), "int64", {"min": 4.0, "max": 2.0}, [2, 2]),
    ("acos", ([1.0, -1.0, 2.0],), "float64", {}, [0, np.pi, NAN]),
    ("acosh", ([1.0, -2.0, INF],), "float32", {}, [0, NAN, INF]),
    ("atanh", ([1.0, -1.0, 1.5],), "float32", {}, [INF, -INF, NAN]),
    ("sin", ([INF, NAN, 0.0],), "float32", {}, [NAN, NAN, 0]),
    ("atan2", ([0.0, 1.0, -INF], [-1.0, 0.0, INF]), "float64", {}, [np.pi, np.pi / 2, -np.pi / 4]),
    ("floor_divide", ([7, -7, 7, 5, -128], [2, 2, -2, 0, -1]), "int8", {}, [3, -4, -4, 0, -128]),
    ("floor_mod", ([7, -7, 7, 5, -128], [3, 3, -3, 0, -1]), "int8", {}, [1, 2, -2, 0, 0]),
    ("mod", ([7, -7, 7, 5, -128], [3, 3, -3, 0, -1]), "int8", {}, [1, -1, 1, 0, 0]),
    ("mod", ([7.5, -7.5, 5.0, INF], [2.0, 2.0, 0.0, 2.0]), "float32", {}, [1.5, -1.5, NAN, NAN]),
    ("log_add_exp", ([1000.0, INF, -INF, 0.0], [1000.0, INF, -INF, -INF]), "float64", {},
     [1000 + np.log(2), INF, -INF, 0]),
    ("left_shift", ([1, 1, 1, 1], [3, 31, 32, -1]), "int32", {}, [8, -(2**31), 0, 0]),
    ("right_shift", ([-8, 8, -8, 8], [1, 1, 99, -1]), "int64", {}, [-4, 4, -1, 0]),
    ("bitwise_not", ([0, 5],), "uint8", {}, [255, 250]),
    ("bitwise_xor", ([True, True], [True, False]), "bool", {}, [False, True]),
    ("logical_xor", ([True, True], [True, False]), "bool", {}, [False, True]),
    ("not_equal", ([1.0, NAN], [1.0, NAN]), "float32", {}, [False, True]),
    ("less_equal", ([1, 2, 3], [2, 2, 2]), "uint8", {}, [True, True, False]),
    ("nn.relu6", ([-1, 3, 9],), "int32", {}, [0, 3, 6]),
    ("nn.leakyrelu", ([-2.0, 2.0, NAN],), "float32", {"alpha": 0.5}, [-1, 2, NAN]),
    ("nn.selu", ([0.0, 1.0, -INF],), "float64", {},
     [0, 1.0507009873554805, -1.0507009873554805 * 1.6732632423543772]),
    ("nn.softplus", ([0.0, 100.0, -100.0],), "float64", {}, [np.log(2), 100, np.exp(-100)]),
    ("nn.softplus", ([90.0, -INF],), "float32", {"threshold": 1e4}, [90, 0]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "operands", "dtype", "attrs", "expected"), VALUES)
def test_values(
    name: str, operands: tuple[list[Any], ...], dtype: str, attrs: dict[str, Attr], expected: Any
) -> None:
    arrays = [np.array(o, dtype) for o in operands]
    bb = rx.BlockBuilder()
    params = [Var(f"x{k}", tensor(a.shape, dtype)) for k, a in enumerate(arrays)]
    with bb.function("main", params):
        bb.emit_func_output(bb.emit(Call(OPS[name], tuple(params), attrs)))

    said = apply_op(OPS[name], tuple(arrays), attrs)
    actual = rx.VirtualMachine(rx.build(bb.get()))["main"](*arrays)

    for result in (said, actual):
        np.testing.assert_allclose(result, np.array(expected, said.dtype), rtol=1e-6, atol=1e-300)


# --- the script -----------------------------------------------------------------------

INFIX = {
    "i // j": "R.floor_divide(i, j)",
    "i % j": "R.mod(i, j)",
    "i & j": "R.bitwise_and(i, j)",
    "i | 3": 'R.bitwise_or(i, R.const(3, "int32"))',
    "i ^ j": "R.bitwise_xor(i, j)",
    "i << j": "R.left_shift(i, j)",
    "1 >> j": 'R.right_shift(R.const(1, "int32"), j)',
    "i >= j": "R.greater_equal(i, j)",
    "i <= j": "R.less_equal(i, j)",
    "i == 0": 'R.equal(i, R.const(0, "int32"))',
    "i != j": "R.not_equal(i, j)",
    "~i": "R.bitwise_not(i)",
    "not b": "R.logical_not(b)",
}


@pytest.mark.parametrize("written", INFIX)
def test_operators_of_python_stand_for_operators(written: str) -> None:
    head = (
        'def main(i: R.Tensor((4,), "int32"), j: R.Tensor((4,), "int32"), '
        'b: R.Tensor((4,), "bool")):\n'
    )

    infix, named = (
        rx.parse(f"@R.function\n{head}    return {value}\n") for value in (written, INFIX[written])
    )

    assert str(infix) == str(named)
