"""What ``rules/README.md`` says of the families, and of equations that are refused, is true."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relax_egraph import rules
from relax_egraph.ir.evaluate import evaluate
from tests.support.exported import module_of, roots_of

README = (Path(rules.__file__).parent / "README.md").read_text("utf-8")
BOOK, _, REFUSED = README.partition("## Refused")
ROWS = {
    row[1]: (row[2], row[3])
    for row in re.finditer(r"(?m)^\| `(.+)` \| .+ \| (\S+) \| (\S+) \|$", REFUSED)
}

INF, NAN = math.inf, math.nan
LEAST = 'R.const(float("-inf"), "float32")'

EQUATIONS: dict[str, tuple[str, str, str, list[Any]]] = {
    "x - x = 0": ("x(1)", "R.subtract(x, x)", "R.zeros_like(x)", [INF]),
    "0 · x = 0": ("x(1)", "R.multiply(c(0.0), x)", "R.zeros_like(x)", [INF]),
    "x / x = 1": ("x(1)", "R.divide(x, x)", "R.ones_like(x)", [0]),
    "x · y / y = x": ("x(1), y(1)", "R.divide(R.multiply(x, y), y)", "R.add(x, c(0.0))", [1, 0]),
    "(x + y) - y = x": ("x(1), y(1)", "R.subtract(R.add(x, y), y)", "R.add(x, c(0.0))", [1, 1e8]),
    "(x + y) + z = x + (y + z)": (
        "x(1), y(1), z(1)",
        "R.add(R.add(x, y), z)",
        "R.add(x, R.add(y, z))",
        [1e8, -1e8, 1],
    ),
    "x / 3 = x · (1/3)": ("x(1)", "R.divide(x, c(3.0))", "R.multiply(x, c(0.33333334))", [5]),
    "x / z + y / z = (x + y) / z": (
        "x(1), y(1), z(1)",
        "R.add(R.divide(x, z), R.divide(y, z))",
        "R.divide(R.add(x, y), z)",
        [2, -1, 0],
    ),
    "√x · √x = x": ("x(1)", "R.multiply(R.sqrt(x), R.sqrt(x))", "R.add(x, c(0.0))", [-1]),
    "√(x · y) = √x · √y": (
        "x(1), y(1)",
        "R.sqrt(R.multiply(x, y))",
        "R.multiply(R.sqrt(x), R.sqrt(y))",
        [-1, -1],
    ),
    "rsqrt(x)² = 1 / x": ("x(1)", "R.square(R.rsqrt(x))", "R.divide(c(1.0), x)", [-1]),
    "(x ^ 2) ^ ½ = x": (
        "x(1)",
        "R.power(R.power(x, c(2.0)), c(0.5))",
        "R.add(x, c(0.0))",
        [-2],
    ),
    "e ^ ln x = x": ("x(1)", "R.exp(R.log(x))", "R.add(x, c(0.0))", [-1]),
    "ln(x · y) = ln x + ln y": (
        "x(1), y(1)",
        "R.log(R.multiply(x, y))",
        "R.add(R.log(x), R.log(y))",
        [-1, -1],
    ),
    "softmax(x + y) = softmax(x)": (
        "x(1, 1), y(1)",
        "R.nn.softmax(R.add(x, y), axis=0)",
        "R.nn.softmax(x, axis=0)",
        [2, INF],
    ),
    "relu(x) = x · (x > 0)": (
        "x(1)",
        "R.nn.relu(x)",
        'R.multiply(x, R.astype(R.greater(x, c(0.0)), "float32"))',
        [-INF],
    ),
    "relu(x) = where(x > 0, x, 0)": (
        "x(1)",
        "R.nn.relu(x)",
        "R.where(R.greater(x, c(0.0)), x, c(0.0))",
        [NAN],
    ),
    "where(m, x, -∞) = x + where(m, 0, -∞)": (
        "m(1):bool, x(1)",
        f"R.where(m, x, {LEAST})",
        f"R.add(x, R.where(m, c(0.0), {LEAST}))",
        [False, NAN],
    ),
    "min(max(x, 2), 1) = max(min(x, 1), 2)": (
        "x(1)",
        "R.minimum(R.maximum(x, c(2.0)), c(1.0))",
        "R.maximum(R.minimum(x, c(1.0)), c(2.0))",
        [0],
    ),
    "¬(x < y) = x ≥ y": (
        "x(1), y(1)",
        "R.logical_not(R.less(x, y))",
        "R.greater_equal(x, y)",
        [NAN, 0],
    ),
    "(x = x) = true": ("x(1)", "R.equal(x, x)", 'R.ones((1,), "bool")', [NAN]),
    "float32(int32(x)) = x": (
        "x(1)",
        'R.astype(R.astype(x, "int32"), "float32")',
        "R.add(x, c(0.0))",
        [0.5],
    ),
    "mean of x, repeated = x": (
        "x(1)",
        "R.mean(R.broadcast_to(x, (0, 1)), axis=[0])",
        "R.add(x, c(0.0))",
        [2],
    ),
    "max of x, repeated = x": (
        "x(1)",
        "R.max(R.broadcast_to(x, (0, 1)), axis=[0])",
        "R.add(x, c(0.0))",
        [2],
    ),
    "max (x · -1) = (max x) · -1": (
        "x(2)",
        "R.max(R.multiply(x, c(-1.0)), axis=[0])",
        "R.multiply(R.max(x, axis=[0]), c(-1.0))",
        [[1, 2]],
    ),
    "Σ (x · y) = (Σ x) · y": (
        "x(0), y(1)",
        "R.sum(R.multiply(x, y), axis=[0], keepdims=True)",
        "R.multiply(R.sum(x, axis=[0]), y)",
        [[], INF],
    ),
    "(x @ y) @ z = x @ (y @ z)": (
        "x(1, 1), y(1, 0), z(0, 1)",
        "R.matmul(R.matmul(x, y), z)",
        "R.matmul(x, R.matmul(y, z))",
        [INF, [], []],
    ),
}


def test_every_family_is_named() -> None:
    table = re.findall(r"(?m)^\| (`.+`) \|", BOOK)
    named = [name for cell in table for name in re.findall(r"`(\w+)`", cell)]

    assert sorted(named) == sorted((*rules.FACTS, *rules.FAMILIES, "lower"))


def test_every_equation_that_is_refused_is_tried() -> None:
    assert ROWS.keys() == EQUATIONS.keys()


@pytest.mark.parametrize("equation", EQUATIONS)
def test_a_refused_equation_is_false_and_not_proven(equation: str) -> None:
    params, left, right, values = EQUATIONS[equation]
    module = module_of(params, f"a = {left}\nb = {right}", outputs=("a", "b"))

    with np.errstate(all="ignore"):
        results = evaluate(module, "main", *_arrays(params, values))

    assert tuple(map(_shown, results)) == ROWS[equation]
    assert len(set(roots_of(module, fast_math=True))) == 2


def _arrays(params: str, values: list[Any]) -> list[Any]:
    """Each of `values` as its parameter wants it."""
    listed = re.findall(r"\w+\(([^)]*)\)(?::(\w+))?", params)
    return [
        np.reshape(np.asarray(value, dtype or "float32"), [int(e) for e in shape.split(",")])
        for (shape, dtype), value in zip(listed, values, strict=True)
    ]


def _shown(result: Any) -> str:
    """The one element of `result`, as the table has it."""
    value = np.asarray(result).item()
    if isinstance(value, bool):
        return str(value).lower()
    known = {INF: "∞", -INF: "-∞"}
    return "NaN" if value != value else known.get(value, f"{value:.8g}")
