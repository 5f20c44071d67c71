"""Spatial loops: every element computed once, nothing written beyond the end."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from relax_egraph.ir.dtypes import converted
from relax_egraph.lower.emit.target import Target
from relax_egraph.tir.expr import (
    Binary,
    BinaryKind,
    Buffer,
    Cast,
    DimSymbol,
    Imm,
    Intrinsic,
    Not,
    Select,
    TirVar,
    binary,
)
from relax_egraph.tir.stmt import (
    BlockAxis,
    For,
    IfThenElse,
    PrimFunc,
    Store,
    TirBlock,
    seq,
)
from tests.support.kernels import (
    FLOATS,
    INTEGERS,
    SIZES,
    TARGETS,
    Array,
    Elementwise,
    buffer,
    compiled,
    loop,
    m,
    n,
    run,
    sample,
)

i, j = TirVar("i"), TirVar("j")


def mapped(
    expression: Elementwise, dtypes: list[str], result: str, kind: Any = "vectorized"
) -> PrimFunc:
    """``out[i] = expression(x0[i], x1[i], …)`` over a symbolic extent."""
    inputs = [buffer(f"x{k}", d, n) for k, d in enumerate(dtypes)]
    out = buffer("out", result, n)
    body = Store(out, (i,), expression(*(x[i] for x in inputs)))
    return PrimFunc((*inputs, out), loop(i, n, body, kind))


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t.vector_bits))
@pytest.mark.parametrize("size", SIZES)
def test_sizes_around_the_vector_length_are_whole(size: int, target: Target) -> None:
    x, y = sample((size,), "float32"), sample((size,), "float32", 1)
    function = mapped(lambda a, b: a * b - a, ["float32", "float32"], "float32")

    result = run(function, [x, y], (size,), target=target, n=size)

    np.testing.assert_allclose(result, x * y - x, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t.vector_bits))
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_product_less_the_same_product_is_zero(dtype: str, target: Target) -> None:
    x, y = sample((1000,), dtype), sample((1000,), dtype, 1)
    function = mapped(lambda a, b, c: a * b - c, [dtype] * 3, dtype)

    result = run(function, [x, y, x * y], (1000,), target=target, n=1000)

    assert not result.any()


@pytest.mark.parametrize("extent", [1, 3, 16, 17, 48, 64, 200, 1000])
@pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t.vector_bits))
def test_constant_extents_are_whole(extent: int, target: Target) -> None:
    x, out = buffer("x", "float32", extent), buffer("out", "float32", extent)
    function = PrimFunc((x, out), loop(i, extent, Store(out, (i,), Intrinsic("exp", (x[i],)))))
    given = sample((extent,), "float32")

    result = run(function, [given], (extent,), target=target)

    np.testing.assert_allclose(result, np.exp(given), rtol=1e-6)


ARITHMETIC: dict[BinaryKind, Callable[[Array, Array], Array]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "min": np.minimum,
    "max": np.maximum,
}


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t.vector_bits))
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("kind", ARITHMETIC)
def test_integers_wrap_and_divide_as_numpy(kind: BinaryKind, dtype: str, target: Target) -> None:
    x, y = sample((1000,), dtype), sample((1000,), dtype, 1)
    limits = np.iinfo(dtype)
    x[:4] = [limits.min, limits.max, 7, limits.min]
    y[:4] = [-1 if limits.min else 255, 0, 0, 1]
    y[4:500] %= 8
    function = mapped(lambda a, b: Binary(kind, a, b), [dtype, dtype], dtype)

    result = run(function, [x, y], (1000,), target=target, n=1000)

    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(result, ARITHMETIC[kind](x, y))


@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 8, 64, 1000])
@pytest.mark.parametrize("kind", ["//", "%"])
def test_division_by_a_constant_rounds_down(kind: BinaryKind, divisor: int) -> None:
    x = np.concatenate([np.arange(-50, 50), sample((50,), "int64")])
    function = mapped(lambda a: Binary(kind, a, Imm(divisor, "int64")), ["int64"], "int64")

    result = run(function, [x], (150,), n=150)

    np.testing.assert_array_equal(result, ARITHMETIC[kind](x, np.array(divisor)))


COMPARISONS: dict[BinaryKind, Callable[[Array, Array], Array]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, "bool"])
@pytest.mark.parametrize("kind", COMPARISONS)
def test_comparisons_give_bytes_0_and_1(kind: BinaryKind, dtype: str) -> None:
    x, y = sample((300,), dtype), sample((300,), dtype, 1)
    y[::3] = x[::3]
    if dtype in FLOATS:
        x[5], y[6], x[7], y[7] = np.nan, np.nan, np.nan, np.nan
    function = mapped(lambda a, b: Binary(kind, a, b), [dtype, dtype], "bool")

    result = run(function, [x, y], (300,), n=300)

    np.testing.assert_array_equal(result, COMPARISONS[kind](x, y))
    assert result.view(np.uint8).max() <= 1


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t.vector_bits))
@pytest.mark.parametrize("result_dtype", [*INTEGERS, *FLOATS, "bool"])
@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, "bool"])
def test_casts_are_exact_or_saturate(dtype: str, result_dtype: str, target: Target) -> None:
    x = sample((130,), dtype)
    if dtype in FLOATS:
        powers = [float(1 << bits) for bits in (7, 8, 15, 16, 31, 32, 63, 64)]
        ends = [np.nextafter(p, w, dtype=dtype) for p in powers for w in (p, 0, 2 * p)]
        special = [0.0, -0.5, 0.5, 127.9, 255.9, np.inf, np.nan, *ends]
        x = np.concatenate([x * 50, special, np.negative(special)])[-130:]
    function = mapped(lambda a: Cast(result_dtype, a), [dtype], result_dtype)

    result = run(function, [x.astype(dtype)], (130,), target=target, n=130)

    np.testing.assert_array_equal(result, converted(x.astype(dtype), result_dtype))


def test_logic_is_of_bits() -> None:
    x, y = sample((99,), "bool"), sample((99,), "bool", 1)
    function = mapped(
        lambda a, b: Binary("or", Binary("and", a, Not(b)), Binary("and", Not(a), b)),
        ["bool", "bool"],
        "bool",
    )

    result = run(function, [x, y], (99,), n=99)

    np.testing.assert_array_equal(result, x ^ y)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("+", np.logical_or), ("*", np.logical_and), ("max", np.logical_or), ("min", np.logical_and)],
)
def test_arithmetic_of_bools_is_logic(kind: BinaryKind, expected: Any) -> None:
    x, y = sample((99,), "bool"), sample((99,), "bool", 1)

    result = run(mapped(lambda a, b: Binary(kind, a, b), ["bool"] * 2, "bool"), [x, y], (99,), n=99)

    np.testing.assert_array_equal(result, expected(x, y))


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t.vector_bits))
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", ["min", "max"])
def test_extrema_of_floats_pass_nan_on(kind: BinaryKind, dtype: str, target: Target) -> None:
    values = [1.0, -1.0, np.nan, np.inf, -np.inf, 0.0]
    x, y = (a.ravel().astype(dtype) for a in np.meshgrid(values, values))
    function = mapped(lambda a, b: Binary(kind, a, b), [dtype, dtype], dtype)

    result = run(function, [x, y], x.shape, target=target, n=x.size)

    np.testing.assert_array_equal(result, ARITHMETIC[kind](x, y))


def test_dtypes_mix_in_one_loop() -> None:
    flag, x, k = sample((77,), "bool"), sample((77,), "float32"), sample((77,), "int8")
    function = mapped(
        lambda c, a, b: Select(c, Cast("float64", a), Cast("float64", b)),
        ["bool", "float32", "int8"],
        "float64",
    )

    result = run(function, [flag, x, k], (77,), n=77)

    np.testing.assert_array_equal(result, np.where(flag, x, k).astype(np.float64))


@pytest.mark.parametrize("kind", ["serial", "parallel", "unrolled", "vectorized"])
def test_every_kind_of_loop_computes_the_same(kind: Any) -> None:
    x = sample((40,), "float32")
    function = mapped(lambda a: Intrinsic("sigmoid", (a,)) * a, ["float32"], "float32", kind)

    result = run(function, [x], (40,), n=40)

    np.testing.assert_allclose(result, x / (1 + np.exp(-x)), rtol=1e-5)


def test_an_unrolled_loop_has_its_variable_as_a_constant() -> None:
    out = buffer("out", "int64", 5)
    body = Store(out, (i,), i * i)

    result = run(PrimFunc((out,), loop(i, 5, body, "unrolled")), [], (5,))

    assert result.tolist() == [0, 1, 4, 9, 16]


def test_loops_unrolled_beyond_the_limit_stay_loops() -> None:
    out = buffer("out", "int32", 2000, 3)
    inner = loop(j, 3, Store(out, (i, j), Cast("int32", i * 3 + j)), "unrolled")

    result = run(PrimFunc((out,), loop(i, 2000, inner, "unrolled")), [], (2000, 3))

    np.testing.assert_array_equal(result.ravel(), np.arange(6000, dtype=np.int32))


@pytest.mark.parametrize("size", SIZES)
def test_an_output_may_replace_its_input(size: int) -> None:
    x = sample((size,), "float32")
    expected = np.tanh(x) + x
    kernel = compiled(mapped(lambda a: Intrinsic("tanh", (a,)) + a, ["float32"], "float32"))

    kernel(x, x, size)

    np.testing.assert_allclose(x, expected, rtol=1e-5, atol=1e-6)


def test_a_row_is_broadcast_and_a_column_too() -> None:
    x, row, column = (
        buffer("x", "float32", m, n),
        buffer("row", "float32", n),
        buffer("column", "float32", m, 1),
    )
    out = buffer("out", "float32", m, n)
    value = (x[i, j] + row[j]) * Intrinsic("exp", (column[i, Imm(0, "int64")],))
    function = PrimFunc(
        (x, row, column, out),
        loop(i, m, loop(j, n, Store(out, (i, j), value)), "parallel"),
    )
    a, b, c = sample((7, 37), "float32"), sample((37,), "float32"), sample((7, 1), "float32")

    result = run(function, [a, b, c], (7, 37), m=7, n=37)

    np.testing.assert_allclose(result, (a + b) * np.exp(c), rtol=1e-5, atol=1e-6)


def test_axes_of_a_block_are_names_of_their_bindings() -> None:
    x, out = buffer("x", "float32", n), buffer("out", "float32", 2, n)
    a, b = TirVar("a"), TirVar("b")
    axes = (
        BlockAxis(a, Imm(2, "int64"), "spatial", i),
        BlockAxis(b, DimSymbol("n"), "spatial", j),
    )
    block = TirBlock("scale", axes, Store(out, (a, b), x[b] * Cast("float32", a)))
    function = PrimFunc((x, out), loop(i, 2, loop(j, n, block), "serial"))
    given = sample((50,), "float32")

    result = run(function, [given], (2, 50), n=50)

    np.testing.assert_array_equal(result, given * np.arange(2, dtype=np.float32)[:, None])


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t.vector_bits))
@pytest.mark.parametrize("size", SIZES)
def test_a_branch_stores_only_where_it_is_taken(size: int, target: Target) -> None:
    x, out = buffer("x", "float32", n), buffer("out", "float32", n)
    branch = IfThenElse(
        binary("<", x[i], 0.0),
        Store(out, (i,), x[i] * 2.0),
        IfThenElse(binary("==", i % 2, 0), Store(out, (i,), x[i])),
    )
    kernel = compiled(PrimFunc((x, out), loop(i, n, branch)), target)
    given, result = sample((size,), "float32"), np.full(size, 9, np.float32)

    kernel(given, result, size)

    even = np.arange(size) % 2 == 0
    expected = np.where(given < 0, given * 2, np.where(even, given, 9))
    np.testing.assert_array_equal(result, expected)


def test_two_outputs_are_written_in_one_loop() -> None:
    x = buffer("x", "float32", n)
    twice, small = buffer("twice", "float32", n), buffer("small", "bool", n)
    body = seq(Store(twice, (i,), x[i] * 2.0), Store(small, (i,), binary("<", twice[i], 1.0)))
    kernel = compiled(PrimFunc((x, twice, small), loop(i, n, body), num_outputs=2))
    given, a, b = sample((70,), "float32"), np.zeros(70, np.float32), np.zeros(70, bool)

    kernel(given, a, b, 70)

    np.testing.assert_array_equal(a, given * 2)
    np.testing.assert_array_equal(b, given * 2 < 1)


def test_padding_selects_by_position() -> None:
    x, out = buffer("x", "float32", n), buffer("out", "float32", n)
    inside = Binary("and", binary(">=", i, 1), binary("<", i, DimSymbol("n") - 1))
    at = binary("max", i - 1, 0)
    function = PrimFunc(
        (x, out), loop(i, n, Store(out, (i,), Select(inside, x[at], Imm(-1.0, "float32"))))
    )
    given = sample((45,), "float32")

    result = run(function, [given], (45,), n=45)

    expected = np.full(45, -1, np.float32)
    expected[1:-1] = given[:-2]
    np.testing.assert_array_equal(result, expected)


def test_a_scalar_needs_no_loop() -> None:
    x, out = Buffer("x", (), "float64"), Buffer("out", (), "float64")

    result = run(PrimFunc((x, out), Store(out, (), x[()] + 1.0)), [np.array(2.0)], ())

    assert result == 3.0


def test_positions_are_values_too() -> None:
    out = buffer("out", "float32", n)
    function = PrimFunc(
        (out,),
        For(
            i,
            DimSymbol("n"),
            "vectorized",
            Store(out, (i,), Cast("float32", DimSymbol("n") - i * 3)),
        ),
    )

    result = run(function, [], (50,), n=50)

    np.testing.assert_array_equal(result, (50 - np.arange(50) * 3).astype(np.float32))
