"""Kernels that store several results, from the module to the numbers, as a user has them."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import relax_egraph as rx
from relax_egraph.ir.expr import Call, Function
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.walk import bindings_of

Array = npt.NDArray[Any]

USED_ON = """
@R.function
def main(x: R.Tensor(("n", 64), "float32")):
    with R.dataflow():
        a = R.add(x, R.const(1, "float32"))
        b = R.tanh(a)
        R.output(a, b)
    return (a, b)
"""

STATISTICS = """
@R.function
def main(x: R.Tensor(("n", 33), "float32")):
    with R.dataflow():
        a = R.sum(x, axis=[1])
        b = R.mean(x, axis=[1])
        c = R.max(x, axis=[1])
        R.output(a, b, c)
    return (a, b, c)
"""

SIBLINGS = """
@R.function
def main(x: R.Tensor(("n", 64), "float32"), y: R.Tensor(("n", 64), "float32")):
    with R.dataflow():
        a = R.exp(x)
        b = R.tanh(y)
        R.output(a, b)
    return (a, b)
"""

SOFTMAX = """
@R.function
def main(x: R.Tensor((7, "n"), "float32")):
    with R.dataflow():
        a = R.max(x, axis=[1], keepdims=True)
        lv = R.exp(R.subtract(x, a))
        b = R.sum(lv, axis=[1], keepdims=True)
        c = R.divide(lv, b)
        R.output(a, b, c)
    return (a, b, c)
"""

EPILOGUES = """
@R.function
def main(x: R.Tensor(("n", 48), "float32"), w: R.Tensor((48, 80), "float32")):
    with R.dataflow():
        lv = R.matmul(x, w)
        a = R.nn.relu(lv)
        b = R.nn.gelu(lv)
        R.output(a, b)
    return (a, b)
"""

STORED_PRODUCT = """
@R.function
def main(x: R.Tensor(("n", 48), "float32"), w: R.Tensor((48, 80), "float32")):
    with R.dataflow():
        a = R.matmul(x, w)
        b = R.sigmoid(a)
        R.output(a, b)
    return (a, b)
"""

RESIDUAL = """
@R.function
def main(x: R.Tensor(("n", 64), "float32"), y: R.Tensor(("n", 64), "float32")):
    with R.dataflow():
        a = R.add(x, y)
        b = R.nn.softmax(a, axis=-1)
        R.output(a, b)
    return (a, b)
"""


def softmax(x: Array) -> tuple[Array, Array, Array]:
    """The largest element of each row, the sum of exponentials, the softmax."""
    top = x.max(1, keepdims=True)
    e = np.exp(x - top)
    total = e.sum(1, keepdims=True)
    return top, total, e / total


def gelu(x: Array) -> Array:
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / np.sqrt(2)))


Expected = Callable[[Sequence[Array]], tuple[Array, ...]]

CASES: dict[str, tuple[str, tuple[tuple[int, ...], ...], Expected]] = {
    "used on": (USED_ON, ((5, 64),), lambda v: (v[0] + 1, np.tanh(v[0] + 1))),
    "statistics": (STATISTICS, ((9, 33),), lambda v: (v[0].sum(1), v[0].mean(1), v[0].max(1))),
    "siblings": (SIBLINGS, ((5, 64), (5, 64)), lambda v: (np.exp(v[0]), np.tanh(v[1]))),
    "softmax": (SOFTMAX, ((7, 50),), lambda v: softmax(v[0])),
    "epilogues": (
        EPILOGUES,
        ((13, 48), (48, 80)),
        lambda v: (np.maximum(v[0] @ v[1], 0), gelu(v[0] @ v[1])),
    ),
    "stored product": (
        STORED_PRODUCT,
        ((13, 48), (48, 80)),
        lambda v: (v[0] @ v[1], 1 / (1 + np.exp(-(v[0] @ v[1])))),
    ),
    "residual": (
        RESIDUAL,
        ((6, 64), (6, 64)),
        lambda v: (v[0] + v[1], softmax(v[0] + v[1])[2]),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_all_results_come_from_one_kernel(name: str) -> None:
    text, shapes, expected = CASES[name]
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    optimized = rx.optimize(rx.parse(text))

    results = rx.VirtualMachine(rx.build(optimized))["main"](*inputs)

    assert len(kernels(optimized)) == 1
    for result, value in zip(results, expected(inputs), strict=True):
        np.testing.assert_allclose(result, value, rtol=1e-5, atol=1e-5)


def kernels(module: IRModule) -> list[str]:
    """The calls in ``main``: of fused functions, and of operators."""
    main = module["main"]
    assert isinstance(main, Function)
    values = [b.value for b in bindings_of(main.body)]
    return [str(v.op) for v in values if isinstance(v, Call)]


def test_the_module_says_which_result_is_which() -> None:
    assert (
        rx.optimize(rx.parse(USED_ON)).script()
        == """\
@I.ir_module
class Module:
    @R.function(private=True)
    def fused_add_tanh(
        x: R.Tensor(("n", 64), "float32"),
    ) -> R.Tuple(R.Tensor(("n", 64), "float32"), R.Tensor(("n", 64), "float32")):
        n = T.int64()
        R.func_attr({"primitive": True, "anchor": "elementwise", "seconds": 2.67e-06})
        with R.dataflow():
            gv: R.Tensor((n, 64), "float32") = R.add(x, R.const(1.0, "float32"))
            gv1: R.Tensor((n, 64), "float32") = R.tanh(gv)
            R.output(gv, gv1)
        return (gv, gv1)

    @R.function
    def main(
        x: R.Tensor(("n", 64), "float32"),
    ) -> R.Tuple(R.Tensor(("n", 64), "float32"), R.Tensor(("n", 64), "float32")):
        n = T.int64()
        cls = Module
        with R.dataflow():
            lv: R.Tuple(
                R.Tensor((n, 64), "float32"), R.Tensor((n, 64), "float32")
            ) = cls.fused_add_tanh(
                x
            )
            a: R.Tensor((n, 64), "float32") = lv[0]
            b: R.Tensor((n, 64), "float32") = lv[1]
            R.output(a, b)
        return (a, b)
"""
    )


@pytest.mark.parametrize("n", [0, 1, 17, 1000])
def test_one_executable_serves_every_batch(n: int) -> None:
    x = np.random.default_rng(0).standard_normal((n, 64)).astype(np.float32)

    a, b = rx.VirtualMachine(rx.build(rx.optimize(rx.parse(USED_ON))))["main"](x)

    np.testing.assert_allclose(a, x + 1, rtol=1e-6)
    np.testing.assert_allclose(b, np.tanh(x + 1), rtol=1e-5, atol=1e-6)
