"""Every scalar function of the loop language: interpreted, compiled, printed and read back."""

from typing import Any

import numpy as np
import pytest

from relax_egraph.ir.dtypes import is_signed
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.lower.emit.target import Target
from relax_egraph.script import parse, print_module
from relax_egraph.tir import te
from relax_egraph.tir.expr import Intrinsic, TirVar
from relax_egraph.tir.functions import BITWISE, FUNCTIONS, INTRINSICS, PREDICATES, takes
from relax_egraph.tir.interpret import interpret
from relax_egraph.tir.stmt import PrimFunc, Store
from tests.support.kernels import INTEGERS, TARGETS, Array, buffer, loop, n, run

INF, NAN = np.inf, np.nan
SPECIAL = [
    *(0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, -1.5, 2.5, -2.5, 0.49999997, -0.3, 3.0, 7.25, -8.75),
    *(1e-40, 1e-9, -1e-5, 20.0, -30.0, 90.0, -800.0, 1e9, 1e10, 1e30, -3e38, INF, -INF, NAN),
]
"""Zeros, halves, and numbers at which functions overflow, vanish or are none."""

NONPOSITIVE = {"exp_nonpositive"}
"""Functions that are defined for numbers that are at most 0."""

DTYPES = ["float32", "float64", *INTEGERS, "bool"]
CASES = [
    (name, dtype)
    for name in INTRINSICS
    for dtype in DTYPES
    if takes(name, dtype)
    and (name, dtype[:5]) != ("fma", "float")  # rounds once, or twice
    and name != "pow"  # of numpy's scalars, x^½ is √x, which differs at -inf
]


def operands(name: str, dtype: str) -> list[Array]:
    """Every tuple of special values, of which integers are those near 0 and at the ends."""
    if dtype == "bool":
        values = np.array([False, True])
    elif dtype.startswith("float"):
        values = np.array([v for v in SPECIAL if not (v > 0 and name in NONPOSITIVE)], dtype)
    else:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        near = [v for v in (-9, -3, -1, 0, 1, 2, 7, 8, 9, 31, 32, 63, 64) if v >= low]
        values = np.array([*near, low, low + 1, high, high - 1], dtype)
    return [a.ravel() for a in np.meshgrid(*[values] * INTRINSICS[name], indexing="ij")]


def applied(name: str, dtype: str, kind: Any = "vectorized") -> PrimFunc:
    """``out[i] = T.name(x0[i], …)``."""
    i = TirVar("i")
    inputs = [buffer(f"x{k}", dtype, n) for k in range(INTRINSICS[name])]
    out = buffer("out", "bool" if name in PREDICATES else dtype, n)
    value = Intrinsic(name, tuple(x[i] for x in inputs))
    return PrimFunc((*inputs, out), loop(i, n, Store(out, (i,), value), kind))


def assert_agree(actual: Array, expected: Array) -> None:
    assert actual.dtype == expected.dtype
    if expected.dtype.kind != "f":
        np.testing.assert_array_equal(actual, expected)
        return
    unit, least = np.finfo(expected.dtype).eps, np.finfo(expected.dtype).smallest_subnormal
    np.testing.assert_allclose(actual, expected, rtol=16 * unit, atol=8 * least)


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_an_interpreted_function_is_that_of_numpy(name: str, dtype: str) -> None:
    arrays = operands(name, dtype)
    with np.errstate(all="ignore"):
        f = np.vectorize(FUNCTIONS[name]) if name == "erf" else FUNCTIONS[name]
        expected = np.asarray(f(*arrays)).astype("bool" if name in PREDICATES else dtype)

    (actual,) = interpret(applied(name, dtype), [a[:99] for a in arrays])

    assert_agree(actual, expected[:99])


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_a_compiled_function_is_the_interpreted_one(name: str, dtype: str) -> None:
    arrays = [a[:: 1 + len(a) // 200].copy() for a in operands(name, dtype)]
    (expected,) = interpret(applied(name, dtype), arrays)

    vectors = run(applied(name, dtype), arrays, expected.shape, n=expected.size)
    serial = run(applied(name, dtype, "serial"), arrays, expected.shape, n=expected.size)

    assert_agree(vectors, expected)
    assert_agree(serial, expected)


@pytest.mark.parametrize("target", TARGETS[1:], ids=lambda t: str(t.vector_bits))
@pytest.mark.parametrize("name", [name for name, dtype in CASES if dtype == "float32"])
def test_a_function_is_the_same_on_narrower_processors(name: str, target: Target) -> None:
    arrays = operands(name, "float32")
    shape = arrays[0].shape
    expected = run(applied(name, "float32"), arrays, shape, n=shape[0])

    actual = run(applied(name, "float32"), arrays, shape, target=target, n=shape[0])

    assert_agree(actual, expected)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_beyond_the_width_shift_all_out(dtype: str) -> None:
    width = np.dtype(dtype).itemsize * 8
    x = np.array([1, 5, 5, 5, np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
    y = np.array([1, width, 127, np.iinfo(dtype).max, width, 120], dtype)
    sign = -1 if is_signed(dtype) else 0

    left = run(applied("shift_left", dtype), [x, y], (6,), n=6)
    right = run(applied("shift_right", dtype), [x, y], (6,), n=6)

    assert left.tolist() == [2, 0, 0, 0, 0, left[5]]
    assert right.tolist()[:5] == [0, 0, 0, 0, sign]


def test_rests_of_divisions_have_the_sign_of_the_dividend() -> None:
    x = np.array([7, -7, 7, -7, 7, -128, 0], "int8")
    y = np.array([3, 3, -3, -3, 0, -1, 5], "int8")

    rest = run(applied("truncmod", "int8"), [x, y], (7,), n=7)

    assert rest.tolist() == [1, -1, 1, -1, 0, 0, 0]


def test_rounding_of_halves() -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.49999997, 8388609.0], "float32")

    results = [run(applied(f, "float32"), [x], (7,), n=7) for f in ("nearbyint", "round")]

    for result in results:
        assert result.tolist() == [0, 2, 2, 0, -2, 0, 8388609]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_huge_argument_does_not_disturb_the_other_lanes(dtype: str) -> None:
    x = np.linspace(-5, 5, 37).astype(dtype)
    x[[3, 20, 36]] = 1e30, -2e7, 3e38
    with np.errstate(all="ignore"):
        expected = [f(x.astype("float64")).astype(dtype) for f in (np.sin, np.cos, np.tan)]

    actual = [run(applied(f, dtype), [x], (37,), n=37) for f in ("sin", "cos", "tan")]

    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-6 if dtype == "float32" else 1e-15)


# --- the script -----------------------------------------------------------------------

SCRIPT = """
@I.ir_module
class Module:
    @T.prim_func
    def f(x: T.Buffer((8,), "float32"), k: T.Buffer((8,), "int32"), out: T.Buffer((8,), "int32")):
        for i in range(8):
            out[i] = VALUE
"""


def stored(text: str) -> str:
    """How the value that is written as `text` is printed."""
    module = parse(SCRIPT.replace("VALUE", text))
    printed = print_module(module)
    assert_structural_equal(parse(printed), module)
    return printed.split("out[i] = ")[1].strip()


INFIX = {
    "k[i] & k[i]": "T.bitwise_and(k[i], k[i])",
    "k[i] | 3": "T.bitwise_or(k[i], T.int32(3))",
    "1 ^ k[i]": "T.bitwise_xor(T.int32(1), k[i])",
    "k[i] << 2": "T.shift_left(k[i], T.int32(2))",
    "k[i] >> k[0] + 1": "T.shift_right(k[i], k[0] + T.int32(1))",
    "~k[i]": "T.bitwise_not(k[i])",
    "T.truncmod(k[i], 3)": "T.truncmod(k[i], T.int32(3))",
    'T.Cast("int32", T.floor(x[i]))': 'T.Cast("int32", T.floor(x[i]))',
    "T.Select(T.isnan(x[i]) or T.isinf(x[i]), 1, k[i])": (
        "T.Select(T.isnan(x[i]) or T.isinf(x[i]), T.int32(1), k[i])"
    ),
}


@pytest.mark.parametrize("written", INFIX)
def test_functions_are_read_and_printed_by_their_names(written: str) -> None:
    printed = stored(written)

    assert printed == INFIX[written]


@pytest.mark.parametrize("name", INTRINSICS)
def test_a_printed_function_is_read_back(name: str) -> None:
    dtype = "int32" if takes(name, "int32") else "float32"
    module = IRModule({"f": applied(name, dtype, "serial")})

    read = parse(print_module(module))

    assert_structural_equal(read, module)


def test_tensor_expressions_have_every_function() -> None:
    x = te.placeholder((4,), "int32", "x")

    every = {name for name in INTRINSICS if isinstance(getattr(te, name)(x[0]), Intrinsic)}

    assert every == set(INTRINSICS)
    assert {n for n in INTRINSICS if takes(n, "int32") and n not in BITWISE} == {
        *("abs", "fma", "shift_left", "shift_right", "truncmod")
    }
