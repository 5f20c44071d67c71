"""Tensors made of no tensor: what is refused, symbolic numbers, and a whole program of them."""

from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.errors import IllTyped
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.block_builder import BlockBuilder, call
from relax_egraph.ir.dims import Dim, parse, symbol
from relax_egraph.ir.dtypes import DTYPES
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import Attr, Expr, PrimValue, ShapeExpr, Var, const
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import PrimStructInfo, ShapeStructInfo, StructInfo, tensor
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.lower.legalize_ops import legalize_ops
from relax_egraph.passes import fold_constant
from relax_egraph.script import print_module

n, m = symbol("n"), symbol("m")
F32 = '"float32"'


def of(*shape: Dim, dtype: str = "float32") -> Var:
    return Var("x", tensor(shape, dtype))


def shape(*extents: Dim) -> ShapeExpr:
    return ShapeExpr(extents)


def host(*values: Dim | float) -> tuple[PrimValue, ...]:
    return tuple(PrimValue(v, "float64" if isinstance(v, float) else "int64") for v in values)


ZERO = const(0.0)

REFUSED: list[tuple[str, tuple[Expr, ...], dict[str, Attr], str]] = [
    (
        "full",
        (shape(2), of(1)),
        {},
        f"R.full: fill_value is R.Tensor((1,), {F32}), needs a tensor of rank 0",
    ),
    (
        "full_like",
        (of(2), of(1)),
        {},
        f"R.full_like: fill_value is R.Tensor((1,), {F32}), needs a tensor of rank 0",
    ),
    (
        "zeros",
        (shape(2, -1),),
        {"dtype": "float32"},
        "R.zeros: the shape is (2, -1), needs extents of 0 or more",
    ),
    (
        "ones",
        (of(2),),
        {"dtype": "int8"},
        f"R.ones: operand shape is R.Tensor((2,), {F32}), needs a shape",
    ),
    ("ones", (shape(2),), {}, "R.ones needs the attribute 'dtype'"),
    ("arange", host(0, 3, 0), {}, "R.arange: step is 0, needs another number"),
    (
        "arange",
        host(0, float("inf")),
        {},
        "R.arange of 0, inf, 1: needs finitely many numbers",
    ),
    (
        "arange",
        host(0, float("nan")),
        {},
        "R.arange of 0, nan, 1: needs finitely many numbers",
    ),
    (
        "one_hot",
        (of(3), *host(1, 0)),
        {"depth": 2},
        f"R.one_hot of R.Tensor((3,), {F32}): needs a tensor of integers",
    ),
    (
        "one_hot",
        (of(3, dtype="int64"), *host(1, 0.0)),
        {"depth": 2},
        'R.one_hot of R.Tensor((3,), "int64"): on_value is of int64, off_value of float64, '
        "needs values of one dtype",
    ),
    (
        "one_hot",
        (of(3, dtype="int64"), *host(1, 0)),
        {"depth": 0},
        'R.one_hot of R.Tensor((3,), "int64"): depth is 0, needs 1 or more',
    ),
    (
        "one_hot",
        (of(3, dtype="int64"), *host(1, 0)),
        {"depth": 2, "axis": 2},
        'R.one_hot of R.Tensor((3,), "int64"): axis 2 is outside of the result\'s rank 2',
    ),
    ("eye", host(-1), {}, "R.eye: n is -1, needs 0 or more"),
    ("eye", host(2, 0.5), {}, "R.eye: m is of float64, needs an integer"),
    ("eye_like", (of(3),), {}, f"R.eye_like of R.Tensor((3,), {F32}): needs a tensor of rank 2"),
    ("tril", (of(3),), {}, f"R.tril of R.Tensor((3,), {F32}): needs a tensor of rank 2 or more"),
    ("triu", (of(3, 3), *host(0.5)), {}, "R.triu: k is of float64, needs an integer"),
    (
        "hamming_window",
        host(3),
        {"dtype": "int8"},
        'R.hamming_window: dtype is "int8", needs a floating-point one',
    ),
]


@pytest.mark.parametrize(("name", "args", "attrs", "message"), REFUSED)
def test_what_is_proven_wrong_is_refused(
    name: str, args: tuple[Expr, ...], attrs: dict[str, Attr], message: str
) -> None:
    with pytest.raises(IllTyped) as refusal:
        call(name, *args, **attrs)

    assert str(refusal.value) == message


@pytest.mark.parametrize("name", ["zeros", "ones", "full", "zeros_like", "eye", "arange"])
def test_a_dtype_that_there_is_not_is_refused(name: str) -> None:
    args: dict[str, tuple[Expr, ...]] = {
        "full": (shape(2), ZERO),
        "zeros_like": (of(2),),
        "eye": host(2),
        "arange": host(2),
    }

    with pytest.raises(IllTyped) as refusal:
        call(name, *args.get(name, (shape(2),)), dtype="float31")

    assert str(refusal.value) == f'R.{name}: no dtype "float31", there are {", ".join(DTYPES)}'


SHAPE = Var("s", ShapeStructInfo(None, 2))
NUMBER = Var("k", PrimStructInfo("int64"))

KNOWN: list[tuple[str, tuple[Expr, ...], dict[str, Attr], StructInfo]] = [
    ("zeros", (shape(n, 4),), {"dtype": "int8"}, tensor((n, 4), "int8")),
    ("zeros", (SHAPE,), {"dtype": "int8"}, tensor(None, "int8", 2)),
    ("full", (shape(n), ZERO), {}, tensor((n,), "float32")),
    ("full_like", (of(n, dtype="int8"), ZERO), {}, tensor((n,), "int8")),
    ("ones_like", (of(n),), {"dtype": "bool"}, tensor((n,), "bool")),
    ("eye", host(n), {}, tensor((n, n), "float32")),
    ("eye", (*host(3), NUMBER), {}, tensor(None, "float32", 2)),
    ("arange", host(n), {}, tensor((n,), "int64")),
    ("arange", host(1, n, 2), {}, tensor((parse("n // 2"),), "int64")),
    ("arange", host(2, n), {}, tensor((parse("max(0, n - 2)"),), "int64")),
    ("arange", host(n, 0, -3), {}, tensor((parse("(n + 2) // 3"),), "int64")),
    ("arange", host(n, m), {}, tensor((parse("max(0, m - n)"),), "int64")),
    ("arange", host(0, n, m), {}, tensor(None, "int64", 1)),
    ("arange", host(0, 1.0, 0.3), {}, tensor((4,), "float32")),
    ("arange", host(n, 1.0), {}, tensor(None, "float32", 1)),
    ("arange", (NUMBER,), {"dtype": "int8"}, tensor(None, "int8", 1)),
    ("hamming_window", host(n), {"dtype": "float64"}, tensor((n,), "float64")),
    (
        "one_hot",
        (of(n, dtype="uint8"), PrimValue(1.0, "float32"), PrimValue(0.0, "float32")),
        {"depth": 5, "axis": 0},
        tensor((5, n), "float32"),
    ),
]


@pytest.mark.parametrize(("name", "args", "attrs", "expected"), KNOWN)
def test_symbolic_numbers_are_told_as_far_as_they_are_known(
    name: str, args: tuple[Expr, ...], attrs: dict[str, Attr], expected: StructInfo
) -> None:
    assert call(name, *args, **attrs).struct_info == expected


@pytest.mark.parametrize(
    ("numbers", "dtype", "expected"),
    [
        ((4,), None, [0, 1, 2, 3]),
        ((5, 0, -2), None, [5, 3, 1]),
        ((3, 3), None, []),
        ((-1.5, 2.0), "int32", [-1, 0, 0, 1]),
        ((0, 1.0, 0.25), None, [0, 0.25, 0.5, 0.75]),
        ((254, 258), "uint8", [254, 255, 0, 1]),
        ((2**53, 2**53 + 2), "int64", [2**53, 2**53 + 1]),
    ],
)
def test_numbers_in_a_row(
    numbers: tuple[float, ...], dtype: str | None, expected: list[float]
) -> None:
    result = apply_op(OPS["arange"], numbers, {"dtype": dtype})

    assert result.tolist() == expected


def test_an_index_outside_of_the_depth_is_nowhere_hot() -> None:
    indices = np.array([2, -1, 3, 0])

    result = apply_op(OPS["one_hot"], (indices, 5, 7), {"depth": 3})

    assert result.tolist() == [[7, 7, 5], [7, 7, 7], [7, 7, 7], [5, 7, 7]]


@pytest.mark.parametrize(
    ("size", "periodic", "expected"),
    [
        (0, 1, []),
        (1, 0, [1.0]),
        (2, 0, [0.08, 0.08]),
        (4, 1, [0.08, 0.54, 1.0, 0.54]),
        (5, 0, [0.08, 0.54, 1.0, 0.54, 0.08]),
    ],
)
def test_a_hamming_window(size: int, periodic: int, expected: list[float]) -> None:
    result = apply_op(OPS["hamming_window"], (size, periodic), {"dtype": "float64"})

    np.testing.assert_allclose(result, expected, atol=1e-15)


def test_a_triangle_keeps_nan_only_where_it_keeps_anything() -> None:
    x = np.full((2, 2), np.nan, np.float32)

    result = apply_op(OPS["tril"], (x,), {})

    np.testing.assert_array_equal(result, np.array([[np.nan, 0], [np.nan, np.nan]], np.float32))


PROGRAM = """
@R.function
def main(x: R.Tensor(("n", 4), "float32"), i: R.Tensor(("m",), "int64")):
    n = T.int64()
    m = T.int64()
    with R.dataflow():
        a = R.add(R.zeros(R.shape([n, 4]), "float32"), x)
        b = R.multiply(R.ones((n, 4), "float32"), R.full((n, 1), R.const(2.0)))
        c = R.full_like(x, 3.0)
        d = R.arange(R.prim_value(1), R.prim_value(n), R.prim_value(2), dtype="int64")
        e = R.arange(m, n, dtype="float64")
        f = R.one_hot(
            i, R.prim_value(T.float32(1)), R.prim_value(T.float32(-0.5)), depth=3, axis=0
        )
        g = R.triu(R.tril(x, n - m), R.prim_value(0))
        h = R.eye(n, m, 1, dtype="int8")
        j = R.add(R.zeros_like(x), R.eye_like(x, k=-1))
        k = R.hamming_window(n, dtype="float32")
        o = R.ones_like(i, dtype="bool")
        p = R.hamming_window(m, False, 0.5, 0.5, dtype="float64")
        R.output(a, b, c, d, e, f, g, h, j, k, o, p)
    return (a, b, c, d, e, f, g, h, j, k, o, p)
"""


def window(size: int, last: int, alpha: float, beta: float) -> Any:
    return alpha - beta * np.cos(2 * np.pi * np.arange(size) / last) if size != 1 else np.ones(1)


def expected_of(x: Any, i: Any) -> list[Any]:
    n, m = len(x), len(i)
    hot = np.arange(3)[:, None] == i
    return [
        x,
        np.full((n, 4), 2, np.float32),
        np.full((n, 4), 3, np.float32),
        np.arange(1, n, 2),
        np.arange(m, n, dtype="float64"),
        np.where(hot, np.float32(1), np.float32(-0.5)),
        np.triu(np.tril(x, n - m)),
        np.eye(n, m, 1, "int8"),
        np.eye(n, 4, -1, "float32"),
        window(n, max(n, 1), 0.54, 0.46).astype("float32"),
        np.ones(m, bool),
        window(m, max(m - 1, 1), 0.5, 0.5),
    ]


@pytest.mark.parametrize("extents", [(5, 2), (2, 5), (0, 3), (3, 0), (1, 1)])
def test_a_program_that_makes_tensors_runs_for_every_extent(extents: tuple[int, int]) -> None:
    module = rx.parse(PROGRAM)
    rng = np.random.default_rng(0)
    x, i = rng.random((extents[0], 4), np.float32), rng.integers(-1, 4, extents[1])

    results = [
        evaluate(module, "main", x, i),
        rx.VirtualMachine(rx.build(module))["main"](x, i),
        rx.VirtualMachine(rx.build(rx.optimize(module)))["main"](x, i),
    ]

    for result in results:
        for actual, expected in zip(result, expected_of(x, i), strict=True):
            assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
            np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-15)


def test_what_makes_tensors_is_printed_and_read_back() -> None:
    module = rx.parse(PROGRAM)

    assert_structural_equal(rx.parse(print_module(module)), module)


def test_tensors_of_symbolic_extents_are_made_by_loops() -> None:
    text = print_module(legalize_ops(rx.parse(PROGRAM)))

    assert "relax.run." not in text


AT_RUN_TIME = """
@R.function
def main(s: R.Shape(ndim=1), k: R.Prim("int64"), i: R.Tensor("int64", ndim=1)):
    with R.dataflow():
        a = R.zeros(s, "float32")
        b = R.arange(k, dtype="float64")
        c = R.one_hot(i, R.prim_value(T.float32(1)), R.prim_value(T.float32(0)), depth=2)
        d = R.arange(0, 1, R.prim_value(T.float32(0.1)))
        R.output(a, b, c, d)
    return (a, b, c, d)
"""


def test_numbers_that_are_known_only_at_run_time_are_used_there() -> None:
    module = rx.parse(AT_RUN_TIME)
    args = ((3,), 2, np.array([1, 0]))

    results = [
        evaluate(module, "main", *args),
        rx.VirtualMachine(rx.build(module))["main"](*args),
    ]

    for a, b, c, d in results:
        assert (a.dtype, a.tolist()) == (np.float32, [0, 0, 0])
        assert (b.dtype, b.tolist()) == (np.float64, [0, 1])
        assert (c.dtype, c.tolist()) == (np.float32, [[0, 1], [1, 0]])
        assert (d.dtype, d.shape) == (np.float32, (10,))


def test_what_is_made_of_no_tensor_is_no_constant() -> None:
    bb = BlockBuilder()
    with bb.function("main", [of(2, 2)]):
        with bb.dataflow():
            made = [
                bb.emit(call("zeros", shape(2, 2), dtype="float32")),
                bb.emit(call("full", shape(2, 2), ZERO)),
                bb.emit(call("eye", *host(2))),
            ]
            out = bb.emit_output(call("ewise_fma", *made))
        bb.emit_func_output(out)
    module = bb.get()

    assert_structural_equal(fold_constant(module), module)
