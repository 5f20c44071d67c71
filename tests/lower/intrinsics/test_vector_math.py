"""The inline functions against float64, in units of the last place, and where they are special."""

import ctypes
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from relax_egraph.ir import dims
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.jit import compile_kernels, link
from relax_egraph.tir.expr import Buffer, DimSymbol, Intrinsic, TirExpr, TirVar, binary
from relax_egraph.tir.stmt import For, PrimFunc, Store
from tests.support.kernels import TARGETS, Array, Elementwise


def run(expression: Elementwise, *arrays: Array, target: Target | None = None) -> Array:
    """`expression` of the elements of `arrays`, compiled as a vectorized loop."""
    n = dims.symbol("n")
    dtype = str(arrays[0].dtype)
    inputs = [Buffer(f"x{k}", (n,), dtype) for k in range(len(arrays))]
    out, i = Buffer("out", (n,), dtype), TirVar("i")
    body = Store(out, (i,), expression(*(x[i] for x in inputs)))
    function = PrimFunc((*inputs, out), For(i, DimSymbol("n"), "vectorized", body))
    kernel = link(compile_kernels({"f": function}, target))["f"]
    result = np.empty_like(arrays[0])
    kernel(*arrays, result, result.size)
    return result


def function(name: str) -> Callable[..., TirExpr]:
    return lambda *args: Intrinsic(name, args)


def ulps(result: Array, exact: npt.NDArray[np.float64]) -> float:
    """The largest error in units of the last place of what `exact` rounds to."""
    with np.errstate(over="ignore", under="ignore"):
        rounded = np.abs(exact.astype(result.dtype))
    finite = np.isfinite(rounded)
    assert (np.isnan(result) == np.isnan(exact)).all()
    assert (result[~finite] == rounded[~finite] * np.sign(exact[~finite])).all() or np.isnan(
        exact[~finite]
    ).any()
    error = np.abs(result[finite].astype(np.float64) - exact[finite])
    return float((error / np.spacing(rounded[finite]).astype(np.float64)).max(initial=0.0))


def wide(low: float, high: float, dtype: str) -> Array:
    """Numbers of all sizes between bounds: evenly spaced, and evenly spaced in magnitude."""
    even = np.linspace(low, high, 200_001)
    small = np.geomspace(1e-40, max(abs(low), abs(high)), 100_001)
    both = np.concatenate([even, small, -small])
    return both[(both >= low) & (both <= high)].astype(dtype)


def _erf(x: Array) -> npt.NDArray[np.float64]:
    return np.array([math.erf(v) for v in x.tolist()])


REFERENCES: dict[str, Callable[[Array], npt.NDArray[np.float64]]] = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "tanh": np.tanh,
    "erf": _erf,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "expm1": np.expm1,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
}
SINGLE = [
    ("exp", -104.0, 89.0, 1.2),
    ("log", 1e-45, 3.4e38, 1.1),
    ("sqrt", 0.0, 3.4e38, 0.51),
    ("rsqrt", 1e-37, 3.4e38, 1.5),
    ("tanh", -20.0, 20.0, 6.0),
    ("erf", -8.0, 8.0, 6.0),
    ("sigmoid", -88.0, 100.0, 3.0),
    ("expm1", -104.0, 89.0, 2.0),
    ("log1p", -1.0, 3.4e38, 3.0),
    ("sin", -1e6, 1e6, 0.51),
    ("sin", -2e9, 2e9, 0.51),
    ("cos", -1e6, 1e6, 0.51),
    ("tan", -1e6, 1e6, 0.51),
    ("asin", -1.0, 1.0, 0.51),
    ("acos", -1.0, 1.0, 0.51),
    ("atan", -3.4e38, 3.4e38, 0.51),
    ("sinh", -90.0, 90.0, 0.51),
    ("cosh", -90.0, 90.0, 0.51),
    ("asinh", -3.4e38, 3.4e38, 0.51),
    ("acosh", 1.0, 3.4e38, 0.51),
    ("atanh", -1.0, 1.0, 0.51),
]


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t.vector_bits))
@pytest.mark.parametrize(("name", "low", "high", "bound"), SINGLE)
def test_single_precision_is_within_its_bound(
    name: str, low: float, high: float, bound: float, target: Target
) -> None:
    x = wide(low, high, "float32")
    with np.errstate(all="ignore"):
        exact = REFERENCES[name](x.astype(np.float64))

    result = run(function(name), x, target=target)

    assert ulps(result, exact) <= bound


DOUBLE = {
    **dict.fromkeys(("log", "rsqrt"), (1e-300, 1e300)),
    **dict.fromkeys(("exp", "tanh", "erf", "sigmoid", "expm1", "sinh", "cosh"), (-700.0, 700.0)),
    **dict.fromkeys(("sin", "cos", "tan"), (-2e6, 2e6)),
    **dict.fromkeys(("asin", "acos", "atanh"), (-1.0, 1.0)),
    **dict.fromkeys(("atan", "asinh"), (-1e300, 1e300)),
    "acosh": (1.0, 1e300),
    "log1p": (-1.0, 1e300),
}


@pytest.mark.parametrize("name", DOUBLE)
def test_double_precision_agrees_with_the_c_library(name: str) -> None:
    low, high = DOUBLE[name]
    x = wide(low, high, "float64")
    with np.errstate(all="ignore"):
        exact = REFERENCES[name](x)

    result = run(function(name), x)

    assert ulps(result, exact) <= 4


INF, NAN = math.inf, math.nan
SPECIAL = {
    "exp": {INF: INF, -INF: 0.0, 89.0: INF, -104.0: 0.0, 0.0: 1.0, NAN: NAN, 1e30: INF},
    "log": {INF: INF, -INF: NAN, 0.0: -INF, -1.0: NAN, 1.0: 0.0, NAN: NAN},
    "sqrt": {INF: INF, -1.0: NAN, 0.0: 0.0, NAN: NAN},
    "rsqrt": {INF: 0.0, 0.0: INF, -1.0: NAN, NAN: NAN},
    "tanh": {INF: 1.0, -INF: -1.0, 0.0: 0.0, 50.0: 1.0, -50.0: -1.0, NAN: NAN, 1e-40: 1e-40},
    "erf": {INF: 1.0, -INF: -1.0, 0.0: 0.0, 30.0: 1.0, NAN: NAN},
    "sigmoid": {INF: 1.0, -INF: 0.0, 0.0: 0.5, -1000.0: 0.0, NAN: NAN},
    "abs": {-INF: INF, -1.5: 1.5, NAN: NAN},
}


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t.vector_bits))
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values_are_those_of_numpy(name: str, target: Target) -> None:
    x = np.array(list(SPECIAL[name]), np.float32)
    expected = np.array(list(SPECIAL[name].values()), np.float32)

    result = run(function(name), x, target=target)

    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("name", SPECIAL)
def test_special_values_of_doubles_are_those_of_numpy(name: str) -> None:
    x = np.array([INF, -INF, 0.0, -0.0, NAN, 1.0, -1.0, 710.0, -746.0])
    with np.errstate(all="ignore"):
        expected = np.abs(x) if name == "abs" else REFERENCES[name](x)

    result = run(function(name), x)

    np.testing.assert_allclose(result, expected, rtol=1e-15)


@pytest.mark.parametrize("name", ["tanh", "erf", "sigmoid"])
def test_functions_bounded_by_one_stay_within_it(name: str) -> None:
    x = np.linspace(-20, 20, 1_000_001, dtype=np.float32)

    result = run(function(name), x)

    assert np.abs(result).max() == 1.0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t.vector_bits))
def test_powers_are_those_of_numpy(dtype: str, target: Target) -> None:
    values = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 3.0, -3.0, 1e20, -1e20, 1e-40, INF, -INF, NAN]
    values += [*np.geomspace(1e-30, 1e30, 21).tolist(), 1.0000001, 127.0, -0.3]
    x, y = (a.ravel().astype(dtype) for a in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), y.astype(np.float64))
        expected = np.power(x, y)

    result = run(function("pow"), x, y, target=target)

    special = ~np.isfinite(expected) | (expected == 0)
    np.testing.assert_array_equal(result[special], expected[special])
    assert ulps(result[~special], exact[~special]) <= (1 if dtype == "float32" else 2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["//", "%"])
def test_division_of_floats_rounds_down_as_numpy(kind: Any, dtype: str) -> None:
    values = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 7.0, -7.0, 0.1, 1e10, INF, -INF, NAN, 3.0, -3.0]
    x, y = (a.ravel().astype(dtype) for a in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        expected = x // y if kind == "//" else x % y

    result = run(lambda a, b: binary(kind, a, b), x, y)

    np.testing.assert_array_equal(result, expected)


def test_the_c_library_is_in_the_process() -> None:
    """What functions of doubles, and sines of large numbers, call lane by lane."""
    library = ctypes.CDLL(None)
    called = ("erf", "tanh", "pow", "fmod", "sin", "cos", "tan", "asin", "acos", "atan", "atan2")
    hyperbolic = ("sinh", "cosh", "asinh", "acosh", "atanh")

    assert all(hasattr(library, name) for name in (*called, *hyperbolic))
