"""The examples of kernels of other libraries: chosen by their prices, equal to numpy.

Everywhere a function of numpy stands in for the library; with the library, its function runs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import relax_egraph as rx
from examples.kernels import dgemm, mlp, running_products
from relax_egraph.vm.registry import unregister_func

Array = npt.NDArray[Any]
RNG = np.random.default_rng(0)


@dataclass(frozen=True)
class Example:
    """An example, its prices at which the function is chosen and is not, operands and result."""

    example: ModuleType
    name: str
    cheap: rx.Prices
    dear: rx.Prices
    operands: tuple[Array, ...]
    expected: Array
    stand_in: Callable[..., Any]
    real: Callable[[], Callable[..., Any]]
    needs: tuple[str, ...]


def product(x: Array, w: Array, out: Array) -> None:
    if x.dtype != np.float64:
        raise TypeError(f"it multiplies float64, not {x.dtype}")
    np.matmul(x, w, out=out)


def sums(x: Array, w: Array, out: Array) -> None:
    np.cumsum(x * w, out=out)


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


X, W = RNG.normal(size=(9, 256)), RNG.normal(size=(256, 256))
ROW, OTHER = RNG.normal(size=(2, 100)) / 10
LAYERS = tuple(
    RNG.normal(size=shape).astype(np.float32)
    for shape in ((5, 64), (64, 128), (128,), (128, 10), (10,))
)

EXAMPLES = [
    Example(
        dgemm,
        "blas.dgemm",
        dgemm.price(rate=200e9, call=1e-6),
        dgemm.price(rate=1e6, call=1e-6),
        (X, W),
        np.maximum(X @ W, 0),
        product,
        dgemm.scipy_dgemm,
        ("scipy.linalg.cython_blas",),
    ),
    Example(
        running_products,
        "numba.running_products",
        running_products.price(element=1e-9),
        running_products.price(element=1e-3),
        (ROW, OTHER),
        np.exp(np.cumsum(ROW * OTHER)),
        sums,
        running_products.compiled,
        ("numba",),
    ),
    Example(
        mlp,
        "onnxruntime.mlp",
        mlp.price(call=1e-7),
        mlp.price(call=1e-3),
        LAYERS,
        softmax(mlp.in_numpy(*LAYERS)),
        mlp.in_numpy,
        mlp.session,
        ("onnx", "onnxruntime"),
    ),
]
BY_NAME = pytest.mark.parametrize("of", EXAMPLES, ids=lambda of: of.name)


def run(of: Example, module: rx.IRModule, function: Callable[..., Any]) -> Array:
    vm = rx.VirtualMachine(rx.build(module), packed={of.name: function})
    return vm["main"](*of.operands)


def best(of: Example, prices: rx.Prices) -> rx.IRModule:
    return rx.optimize(of.example.MODULE, [of.example.RULES], prices=prices, hints={"n": 100})


@BY_NAME
def test_the_function_is_called_where_it_is_cheap(of: Example) -> None:
    module = best(of, of.cheap)

    assert f'"{of.name}"' in module.script()
    np.testing.assert_allclose(run(of, module, of.stand_in), of.expected, rtol=1e-4, atol=1e-4)


@BY_NAME
def test_our_kernels_run_where_it_is_dear(of: Example) -> None:
    module = best(of, of.dear)

    assert f'"{of.name}"' not in module.script()
    np.testing.assert_allclose(run(of, module, of.stand_in), of.expected, rtol=1e-4, atol=1e-4)


@BY_NAME
def test_the_library_computes_the_same(of: Example) -> None:
    for module in of.needs:
        pytest.importorskip(module, reason=f"{of.name} is a function of {module}")

    result = run(of, best(of, of.cheap), of.real())

    np.testing.assert_allclose(result, of.expected, rtol=1e-4, atol=1e-4)


@BY_NAME
def test_the_rule_is_right(of: Example) -> None:
    rx.register_func(of.name)(of.stand_in)
    try:
        (verdict,) = rx.rules.check(of.example.RULES, trials=3, processes=1)
    finally:
        unregister_func(of.name)

    assert verdict.sound, str(verdict)


def test_the_size_decides_between_a_kernel_and_blas() -> None:
    prices = dgemm.price(rate=200e9, call=4e-4)

    few, many = (
        rx.optimize(dgemm.MODULE, [dgemm.RULES], prices=prices, hints={"n": n}) for n in (4, 4096)
    )

    assert "blas.dgemm" not in few.script()
    assert "blas.dgemm" in many.script()
