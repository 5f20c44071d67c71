"""The loops of every operator compute what numpy does."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from relax_egraph.errors import NotLowerable
from relax_egraph.ir.op import OPS
from relax_egraph.lower.legalize import LEGALIZE
from relax_egraph.tir import te
from tests.support.legalized import Array, Known, assert_close, legalized, sample, static, symbolic

FLOATS = ("float32", "float64")
NUMBERS = (*FLOATS, "int32", "uint8", "uint64")
ALL = (*NUMBERS, "bool")

SHAPES = pytest.mark.parametrize("known", [static, symbolic])


def erf(x: Array) -> Array:
    flat = [math.erf(v) for v in x.ravel().tolist()]
    return np.array(flat, x.dtype).reshape(x.shape)


def in_dtype(f: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda x: np.asarray(f(x)).astype(x.dtype)


UNARY: dict[str, tuple[tuple[str, ...], Callable[[Array], Array]]] = {
    "abs": (ALL, np.abs),
    "negative": (NUMBERS, np.negative),
    "exp": (FLOATS, np.exp),
    "log": (FLOATS, np.log),
    "sqrt": (FLOATS, np.sqrt),
    "rsqrt": (FLOATS, lambda x: 1 / np.sqrt(x)),
    "tanh": (FLOATS, np.tanh),
    "erf": (FLOATS, erf),
    "sigmoid": (FLOATS, lambda x: 1 / (1 + np.exp(-x))),
    "nn.relu": (ALL, lambda x: np.where(x > 0, x, x.dtype.type(0))),
    "nn.gelu": (FLOATS, in_dtype(lambda x: x / 2 * (1 + erf(x / math.sqrt(2))))),
    "nn.gelu_tanh": (
        FLOATS,
        in_dtype(lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
    ),
    "nn.silu": (FLOATS, lambda x: x / (1 + np.exp(-x))),
}

BINARY: dict[str, tuple[tuple[str, ...], Callable[[Array, Array], Array]]] = {
    "add": (ALL, np.add),
    "subtract": (NUMBERS, np.subtract),
    "multiply": (ALL, np.multiply),
    "divide": (FLOATS, np.divide),
    "power": (FLOATS, np.power),
    "maximum": (ALL, np.maximum),
    "minimum": (ALL, np.minimum),
    "greater": (ALL, np.greater),
    "less": (ALL, np.less),
    "equal": (ALL, np.equal),
}


def least(dtype: np.dtype[Any]) -> Any:
    ends = {"f": -np.inf, "b": False}
    return ends[dtype.kind] if dtype.kind in ends else np.iinfo(dtype).min


def greatest(dtype: np.dtype[Any]) -> Any:
    ends = {"f": np.inf, "b": True}
    return ends[dtype.kind] if dtype.kind in ends else np.iinfo(dtype).max


def mean(x: Array, **how: Any) -> Array:
    total = np.asarray(np.sum(x, **how))
    count = np.sum(np.ones_like(x), **how)
    return total / count


def sum_(x: Array, **how: Any) -> Any:
    return np.sum(x, dtype=x.dtype, **how)


def max_(x: Array, **how: Any) -> Any:
    return np.max(x, initial=least(x.dtype), **how)


def min_(x: Array, **how: Any) -> Any:
    return np.min(x, initial=greatest(x.dtype), **how)


REDUCTIONS: dict[str, tuple[tuple[str, ...], Callable[..., Any]]] = {
    "sum": (ALL, sum_),
    "max": (ALL, max_),
    "min": (ALL, min_),
    "mean": (FLOATS, mean),
}


def cases(table: dict[str, tuple[tuple[str, ...], Any]]) -> list[tuple[str, str]]:
    return [(name, dtype) for name, (dtypes, _) in table.items() for dtype in dtypes]


@SHAPES
@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 1, 2)])
@pytest.mark.parametrize(("name", "dtype"), cases(UNARY))
def test_a_function_of_one_tensor_is_that_of_numpy(
    known: Known, shape: tuple[int, ...], name: str, dtype: str
) -> None:
    x = sample(shape, dtype)
    with np.errstate(all="ignore"):
        expected = UNARY[name][1](x)

    actual = legalized(known, name, x)

    assert_close(actual, np.asarray(expected))


BROADCASTS = [
    ((), ()),
    ((3, 2), (3, 2)),
    ((3, 2), (2,)),
    ((1, 2), (3, 1)),
    ((), (2,)),
    ((0, 2), (1, 2)),
    ((2, 1, 3), (4, 1)),
    ((1,), (0,)),
]


@SHAPES
@pytest.mark.parametrize(("a", "b"), BROADCASTS)
@pytest.mark.parametrize(("name", "dtype"), cases(BINARY))
def test_a_function_of_two_tensors_is_that_of_numpy(
    known: Known, a: tuple[int, ...], b: tuple[int, ...], name: str, dtype: str
) -> None:
    x, y = sample(a, dtype), sample(b, dtype, seed=1)
    with np.errstate(all="ignore"):
        expected = BINARY[name][1](x, y)

    actual = legalized(known, name, x, y)

    assert_close(actual, expected)


@pytest.mark.parametrize("name", ["subtract", "negative"])
def test_booleans_are_not_subtracted(name: str) -> None:
    operands = [te.placeholder((2,), "bool", "x") for _ in OPS[name].operands]

    with pytest.raises(NotLowerable) as raised:
        LEGALIZE[name](*operands)

    assert str(raised.value) == f"R.{name} of booleans: needs numbers"


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_nan_passes_through_maximum_and_minimum(name: str, dtype: str) -> None:
    x = np.array([np.nan, 1, np.nan, 2], dtype)
    y = np.array([1, np.nan, np.nan, 3], dtype)

    actual = legalized(static, name, x, y)

    assert_close(actual, BINARY[name][1](x, y))


@pytest.mark.parametrize("name", ["nn.relu", "max", "min"])
def test_nan_passes_through_relu_and_extrema(name: str) -> None:
    x = np.array([1, np.nan, -1], np.float32)

    actual = legalized(static, name, x)

    assert np.isnan(actual).any()


def test_negative_of_zero_is_negative_zero() -> None:
    actual = legalized(static, "negative", np.zeros(1, np.float32))

    assert np.signbit(actual).tolist() == [True]


@SHAPES
@pytest.mark.parametrize("dtype", ALL)
def test_ewise_fma_multiplies_and_adds(known: Known, dtype: str) -> None:
    x, y, z = sample((3, 2), dtype), sample((2,), dtype, 1), sample((3, 1), dtype, 2)

    actual = legalized(known, "ewise_fma", x, y, z)

    assert_close(actual, x * y + z)


@SHAPES
@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("shape", [(3, 2), (3, 1), (1,), (), (0, 2)])
def test_where_chooses_by_a_broadcast_condition(
    known: Known, dtype: str, shape: tuple[int, ...]
) -> None:
    condition = sample(shape, "bool")
    x, y = sample((2,), dtype, 1), sample((1, 2), dtype, 2)

    actual = legalized(known, "where", condition, x, y)

    assert_close(actual, np.where(condition, x, y))


@pytest.mark.parametrize("source", ALL)
@pytest.mark.parametrize("target", [*ALL, "int64"])
def test_astype_converts_as_numpy_does(source: str, target: str) -> None:
    x = np.array([0, 1, 2.75, 7.5], source) if source != "bool" else np.array([False, True])

    actual = legalized(symbolic, "astype", x, dtype=target)

    assert_close(actual, x.astype(target))


def test_astype_truncates_towards_zero() -> None:
    actual = legalized(static, "astype", np.array([-1.75, 1.75], np.float32), dtype="int32")

    assert_close(actual, np.array([-1, 1], np.int32))


@SHAPES
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((), None),
        ((4,), None),
        ((3, 2), (0,)),
        ((3, 2), (-1,)),
        ((3, 2), ()),
        ((2, 1, 3), (0, 2)),
        ((2, 1, 3), (2, 0)),
        ((2, 0), (1,)),
        ((0, 2), (1,)),
        ((0, 0), None),
    ],
)
@pytest.mark.parametrize(("name", "dtype"), cases(REDUCTIONS))
def test_a_reduction_is_that_of_numpy(
    known: Known,
    keepdims: bool,
    shape: tuple[int, ...],
    axis: tuple[int, ...] | None,
    name: str,
    dtype: str,
) -> None:
    x = sample(shape, dtype)
    with np.errstate(all="ignore"):
        expected = np.asarray(REDUCTIONS[name][1](x, axis=axis, keepdims=keepdims))

    actual = legalized(known, name, x, axis=axis, keepdims=keepdims)

    assert_close(actual, expected.astype(dtype))


@SHAPES
@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((2, 3), (3, 4)),
        ((3,), (3, 4)),
        ((2, 3), (3,)),
        ((3,), (3,)),
        ((5, 2, 3), (3, 4)),
        ((2, 3), (5, 3, 4)),
        ((5, 1, 2, 3), (2, 3, 4)),
        ((5, 2, 3), (3,)),
        ((3,), (5, 3, 4)),
        ((2, 0), (0, 4)),
        ((0, 3), (3, 4)),
        ((1, 1), (1, 1)),
    ],
)
def test_matmul_is_that_of_numpy(
    known: Known, dtype: str, a: tuple[int, ...], b: tuple[int, ...]
) -> None:
    x, y = sample(a, dtype), sample(b, dtype, seed=1)

    actual = legalized(known, "matmul", x, y)

    assert_close(actual, np.matmul(x, y))


@SHAPES
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("shape", "axis"), [((5,), -1), ((3, 4), -1), ((3, 4), 0), ((2, 1, 3), 1), ((0, 3), 1)]
)
def test_softmax_is_that_of_numpy(
    known: Known, dtype: str, shape: tuple[int, ...], axis: int
) -> None:
    x = sample(shape, dtype) + 100
    e = np.exp(x - x.max(axis=axis, keepdims=True, initial=-np.inf))

    actual = legalized(known, "nn.softmax", x, axis=axis)

    assert_close(actual, e / e.sum(axis=axis, keepdims=True))


def test_every_operator_has_loops_but_those_that_run_as_packed_functions() -> None:
    without = {name for name, op in OPS.items() if op.intrinsic} | {"unique", "shape_of"}
    without |= {
        "check_indices",
        "dynamic_strided_slice",
        "image.non_max_suppression",
        "nonzero",
        "prim_less_equal",
        "reinterpret",
        "tensor_to_shape",
        "median",
    }
    without |= {name for name in OPS if name.startswith(("grad.", "vision."))}

    assert set(LEGALIZE) == set(OPS) - without
