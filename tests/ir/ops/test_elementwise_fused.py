"""Elementwise operators in one kernel with others; and kernels that call the C library."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.tir.stmt import PrimFunc

DENSE = """
@R.function
def main(x: R.Tensor(("n", 64), "float32"), w: R.Tensor((64, 32), "float32")):
    with R.dataflow():
        lv = R.matmul(x, w)
        lv1 = R.nn.leakyrelu(lv, alpha=0.1)
        lv2 = R.sin(lv1)
        gv = R.clip(lv2, min=-0.5, max=0.75)
        R.output(gv)
    return gv
"""

CHAIN = """
@R.function
def main(i: R.Tensor(("n", 33), "int32"), x: R.Tensor(("n", 33), "float32")):
    with R.dataflow():
        lv = R.bitwise_and(i, R.const(3, "int32"))
        lv1 = R.equal(lv, R.const(0, "int32"))
        lv2 = R.isnan(x)
        lv3 = R.logical_or(lv1, lv2)
        lv4 = R.nn.softplus(x)
        lv5 = R.floor(x)
        gv = R.where(lv3, lv5, lv4)
        R.output(gv)
    return gv
"""


def only_kernel(text: str) -> rx.IRModule:
    """The optimized module, in which one loop function is left."""
    best = rx.optimize(rx.parse(text))
    lowered = rx.lower_module(best)
    assert sum(isinstance(f, PrimFunc) for f in lowered.functions.values()) == 1
    return best


def test_new_operators_are_fused_with_a_product() -> None:
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s).astype(np.float32) for s in ((7, 64), (64, 32)))
    product = x.astype(np.float64) @ w

    result = rx.VirtualMachine(rx.build(only_kernel(DENSE)))["main"](x, w)

    expected = np.clip(np.sin(np.where(product > 0, product, product * 0.1)), -0.5, 0.75)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


def test_new_operators_are_fused_with_one_another() -> None:
    rng = np.random.default_rng(0)
    i = rng.integers(-99, 99, (5, 33), np.int32)
    x = rng.uniform(-5, 5, (5, 33)).astype(np.float32)
    x[2, 3] = np.nan

    result = rx.VirtualMachine(rx.build(only_kernel(CHAIN)))["main"](i, x)

    soft = np.log1p(np.exp(x.astype(np.float64)))
    expected = np.where((i & 3 == 0) | np.isnan(x), np.floor(x), soft)
    np.testing.assert_allclose(result, expected, rtol=1e-5)


ONE_SHAPE = """
@R.function
def main(x: R.Tensor((4, 5), "int32"), y: R.Tensor((), "int32")):
    with R.dataflow():
        lv = R.broadcast_to(y, R.shape([4, 5]))
        lv1 = R.ewise_add(x, lv)
        gv = R.negative(lv1)
        R.output(gv)
    return gv
"""


def test_what_broadcasts_nothing_keeps_the_broadcast_of_its_operand() -> None:
    x, y = np.arange(20, dtype=np.int32).reshape(4, 5), np.array(3, np.int32)

    result = rx.VirtualMachine(rx.build(only_kernel(ONE_SHAPE)))["main"](x, y)

    np.testing.assert_array_equal(result, -(x + y))


LIBRARY = """
@R.function
def main(x: R.Tensor(("n",), "float64")):
    with R.dataflow():
        lv = R.asinh(x)
        lv1 = R.cosh(lv)
        lv2 = R.tan(lv1)
        lv3 = R.floor_mod(lv2, x)
        gv = R.atan2(lv3, x)
        R.output(gv)
    return gv
"""

RUN = """
import sys
import numpy as np
import relax_egraph as rx
vm = rx.VirtualMachine(rx.load(sys.argv[1]))
np.save(sys.argv[3], vm["main"](np.load(sys.argv[2])))
"""


@pytest.mark.parametrize("caching", [True, False])
def test_functions_of_the_c_library_are_found_by_a_fresh_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caching: bool
) -> None:
    monkeypatch.setenv("RELAX_EGRAPH_CACHE", str(tmp_path / "cache") if caching else "off")
    x = np.array([0.5, -1.25, 3.0, 1e8, -7.0, 2e7, 0.1])
    np.save(tmp_path / "x.npy", x)
    for _ in range(2):  # made, then found in the cache
        rx.build(rx.optimize(rx.parse(LIBRARY))).save(tmp_path / "model.rxe")

    arguments = [str(tmp_path / name) for name in ("model.rxe", "x.npy", "y.npy")]
    subprocess.run([sys.executable, "-c", RUN, *arguments], check=True)

    expected = np.arctan2(np.mod(np.tan(np.cosh(np.arcsinh(x))), x), x)
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), expected, rtol=1e-6)
