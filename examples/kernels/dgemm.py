"""Products of float64 matrices by scipy's BLAS, called through the function pointer of ``dgemm``.

Run from the top of the repository, with scipy: ``python -m examples.kernels.dgemm``.
"""

from collections.abc import Callable
from ctypes import CFUNCTYPE, POINTER, byref, c_char, c_char_p, c_double, c_int, c_void_p, py_object
from ctypes import pythonapi as python
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import relax_egraph as rx
from relax_egraph.extract import PricedCall

Array = npt.NDArray[Any]
Product = Callable[[Array, Array, Array], None]

RULES = Path(__file__).with_name("dgemm.egg")

MODULE = rx.parse("""
@R.function
def main(x: R.Tensor(("n", 256), "float64"), w: R.Tensor((256, 256), "float64")):
    with R.dataflow():
        y = R.nn.relu(R.matmul(x, w))
        R.output(y)
    return y
""")


def scipy_dgemm() -> Product:
    """``product(x, w, out)`` by the ``dgemm`` of the BLAS that scipy brings."""
    capsules = import_module("scipy.linalg.cython_blas").__pyx_capi__
    dgemm = _pointer(capsules["dgemm"])
    no, one, zero = c_char(b"N"), c_double(1), c_double(0)

    def product(x: Array, w: Array, out: Array) -> None:
        (m, k), n = x.shape, w.shape[1]
        if not {x.dtype, w.dtype, out.dtype} == {np.dtype(np.float64)}:
            raise TypeError(f"dgemm multiplies float64, not {x.dtype} and {w.dtype}")
        if not out.size or not k:
            out[...] = 0
            return
        a, b = np.ascontiguousarray(w), np.ascontiguousarray(x)
        rows, columns, depth = c_int(n), c_int(m), c_int(k)  # BLAS stores columns: outᵀ = wᵀ xᵀ
        dgemm(
            *(byref(no), byref(no), byref(rows), byref(columns), byref(depth)),
            *(byref(one), _data(a), byref(rows), _data(b), byref(depth)),
            *(byref(zero), _data(out), byref(rows)),
        )

    return product


def price(rate: float, call: float) -> rx.Prices:
    """A library that needs `call` seconds to begin, and then computes `rate` flops a second."""

    def seconds(of: PricedCall) -> float:
        x, w = of.shapes
        return call + 2 * x[0] * x[1] * w[1] / rate if x and w else call

    return rx.Prices(calls={"blas.dgemm": seconds})


def _pointer(capsule: Any) -> Callable[..., None]:
    """The C function in a capsule: ``void dgemm(char *transa, …)``."""
    python.PyCapsule_GetName.restype = c_char_p
    python.PyCapsule_GetName.argtypes = [py_object]
    python.PyCapsule_GetPointer.restype = c_void_p
    python.PyCapsule_GetPointer.argtypes = [py_object, c_char_p]
    address = python.PyCapsule_GetPointer(capsule, python.PyCapsule_GetName(capsule))
    text, count, number = POINTER(c_char), POINTER(c_int), POINTER(c_double)
    kind = CFUNCTYPE(
        None,
        *(text, text, count, count, count, number, number, count, number, count),
        *(number, number, count),
    )
    return kind(address)


def _data(x: Array) -> Any:
    return x.ctypes.data_as(POINTER(c_double))


def main() -> None:
    """Print what is chosen for 4 rows and for 4096, and whether numpy agrees."""
    product = scipy_dgemm()
    rng = np.random.default_rng(0)
    w = rng.normal(size=(256, 256))
    for n in (4, 4096):
        best = rx.optimize(MODULE, [RULES], prices=price(rate=200e9, call=4e-4), hints={"n": n})
        vm = rx.VirtualMachine(rx.build(best), packed={"blas.dgemm": product})
        x = rng.normal(size=(n, 256))
        same = np.allclose(vm["main"](x, w), np.maximum(x @ w, 0))
        print(f"{n} rows: {'blas' if 'blas.dgemm' in best.script() else 'a kernel'}, numpy: {same}")


if __name__ == "__main__":
    main()
