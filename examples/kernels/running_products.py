"""Running sums of products by a function that numba compiles.

Run from the top of the repository, with numba: ``python -m examples.kernels.running_products``.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import relax_egraph as rx
from relax_egraph.extract import PricedCall

Array = npt.NDArray[Any]
Kernel = Callable[[Array, Array, Array], None]

RULES = Path(__file__).with_name("running_products.egg")

MODULE = rx.parse("""
@R.function
def main(x: R.Tensor(("n",), "float64"), w: R.Tensor(("n",), "float64")):
    with R.dataflow():
        y = R.exp(R.cumsum(R.multiply(x, w), axis=0))
        R.output(y)
    return y
""")


def running_products(x: Array, w: Array, out: Array) -> None:
    """``out[i] = Σ x[k] · w[k]`` for all ``k <= i``, in plain loops."""
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * w[i]
        out[i] = total


def compiled() -> Kernel:
    """The same as machine code."""
    return import_module("numba").njit(running_products)


def price(element: float, call: float = 1e-6) -> rx.Prices:
    """A function that needs `call` seconds to begin, and `element` seconds for each element."""

    def seconds(of: PricedCall) -> float:
        return call + element * (of.result[0] if of.result else 0)

    return rx.Prices(calls={"numba.running_products": seconds})


def main() -> None:
    """Print what is chosen at two prices, and whether numpy agrees."""
    kernel = compiled()
    x, w = np.random.default_rng(0).normal(size=(2, 10_000)) / 100
    for element in (1e-9, 1e-6):
        best = rx.optimize(MODULE, [RULES], prices=price(element), hints={"n": len(x)})
        vm = rx.VirtualMachine(rx.build(best), packed={"numba.running_products": kernel})
        same = np.allclose(vm["main"](x, w), np.exp(np.cumsum(x * w)))
        chosen = "numba" if "numba.running_products" in best.script() else "a kernel"
        print(f"{element:g} s an element: {chosen}, numpy: {same}")


if __name__ == "__main__":
    main()
