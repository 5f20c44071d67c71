"""From a module to a running executable, as a user does it."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import relax_egraph as rx
from relax_egraph.errors import RunError

Array = npt.NDArray[Any]

MLP = """
@R.function
def main(
    x: R.Tensor(("n", 64), "float32"),
    w: R.Tensor((32, 64), "float32"),
    b: R.Tensor((32,), "float32"),
):
    with R.dataflow():
        lv0 = R.permute_dims(w)
        lv1 = R.matmul(x, lv0)
        lv2 = R.add(lv1, b)
        gv0 = R.nn.relu(lv2)
        R.output(gv0)
    return gv0
"""


def arrays(*shapes: tuple[int, ...]) -> list[Array]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(s).astype(np.float32) for s in shapes]


def compiled(text: str) -> rx.VirtualMachine:
    return rx.VirtualMachine(rx.build(rx.optimize(rx.parse(text))))


@pytest.fixture(scope="module")
def mlp() -> rx.VirtualMachine:
    return compiled(MLP)


@pytest.mark.parametrize("n", [0, 1, 7, 1797])
def test_one_executable_serves_every_batch(mlp: rx.VirtualMachine, n: int) -> None:
    x, w, b = arrays((n, 64), (32, 64), (32,))

    result = mlp["main"](x, w, b)

    np.testing.assert_allclose(result, np.maximum(x @ w.T + b, 0), rtol=1e-5, atol=1e-5)


def test_arguments_may_be_given_by_name_and_need_not_be_contiguous(mlp: rx.VirtualMachine) -> None:
    x, w, b = arrays((64, 7), (32, 64), (32,))

    result = mlp["main"](b=b, w=w, x=x.T)

    np.testing.assert_allclose(result, np.maximum(x.T @ w.T + b, 0), rtol=1e-5, atol=1e-5)


def test_the_module_unoptimized_gives_the_same() -> None:
    x, w, b = arrays((5, 64), (32, 64), (32,))
    module = rx.parse(MLP)

    plain, best = (
        rx.VirtualMachine(rx.build(m))["main"](x, w, b) for m in (module, rx.optimize(module))
    )

    np.testing.assert_allclose(plain, best, rtol=1e-5, atol=1e-5)


LOADER = """
import sys
import numpy as np
import relax_egraph as rx
x, w, b = (np.load(p) for p in sys.argv[2:5])
np.save(sys.argv[5], rx.VirtualMachine(rx.load(sys.argv[1]))["main"](x, w, b))
"""


def test_a_saved_executable_gives_the_same_in_a_new_process(tmp_path: Path) -> None:
    executable = rx.build(rx.optimize(rx.parse(MLP)))
    inputs = arrays((7, 64), (32, 64), (32,))
    names = [tmp_path / f"{k}.npy" for k in ("x", "w", "b", "result")]
    for name, array in zip(names, inputs, strict=False):
        np.save(name, array)

    executable.save(tmp_path / "mlp.rxe")
    command = [sys.executable, "-c", LOADER, tmp_path / "mlp.rxe", *names]
    subprocess.run(list(map(str, command)), check=True)

    expected = rx.VirtualMachine(executable)["main"](*inputs)
    np.testing.assert_array_equal(np.load(names[-1]), expected)


@pytest.mark.parametrize(
    ("bad", "what_came"),
    [
        (np.zeros(64, np.float32), 'R.Tensor((64,), "float32")'),
        (np.zeros((2, 64)), 'R.Tensor((2, 64), "float64")'),
        (
            np.zeros((2, 63), np.float32),
            'R.Tensor((2, 63), "float32"): dimension 1 is 63, needs 64',
        ),
    ],
)
def test_a_wrong_input_is_named_with_what_was_expected_and_what_came(
    mlp: rx.VirtualMachine, bad: Array, what_came: str
) -> None:
    _, w, b = arrays((1,), (32, 64), (32,))

    with pytest.raises(RunError) as error:
        mlp["main"](bad, w, b)

    expected = 'main: parameter x: expected R.Tensor((n, 64), "float32"), got '
    assert str(error.value) == expected + what_came


UNKNOWN = """
@R.function
def main(x: R.Tensor(dtype="float32", ndim=1)):
    m = T.int64()
    with R.dataflow():
        lv0 = R.unique(x)
        lv1 = R.add(lv0, lv0)
        lv2 = R.match_cast(lv1, R.Tensor((m,), "float32"))
        gv0 = R.exp(R.negative(lv2))
        R.output(gv0)
    return gv0
"""


def test_a_value_of_unknown_shape_runs_and_match_cast_brings_it_back() -> None:
    main = compiled(UNKNOWN)["main"]
    x = np.array([3, 1, 3, 2, 1], np.float32)

    result = main(x)

    np.testing.assert_allclose(result, np.exp(-2 * np.array([1, 2, 3], np.float32)), rtol=1e-6)


def test_unknown_rank_and_shape_still_run() -> None:
    text = """
    @R.function
    def main(x: R.Tensor(dtype="float32"), y: R.Tensor(dtype="float32")):
        with R.dataflow():
            gv0 = R.nn.relu(R.matmul(x, y))
            R.output(gv0)
        return gv0
    """
    x, y = arrays((3, 4), (4, 5))

    result = compiled(text)["main"](x, y)

    np.testing.assert_allclose(result, np.maximum(x @ y, 0), rtol=1e-5)


def test_a_fused_kernel_gets_the_symbols_that_its_operands_do_not_tell() -> None:
    text = """
    @R.function
    def main(x: R.Tensor(("n * 2", "n + m"), "float32"), n: R.Tensor(("n", "m"), "float32")):
        with R.dataflow():
            gv0 = R.exp(R.negative(x))
            R.output(gv0)
        return gv0
    """
    x, n = arrays((4, 5), (2, 3))

    result = compiled(text)["main"](x, n)

    np.testing.assert_allclose(result, np.exp(-x), rtol=1e-6)


def test_a_view_made_at_run_time_is_what_kernels_take() -> None:
    text = """
    @R.function
    def main(x: R.Tensor(dtype="float32", ndim=2)):
        n = T.int64()
        m = T.int64()
        with R.dataflow():
            lv0 = R.permute_dims(x)
            lv1 = R.match_cast(lv0, R.Tensor((n, m), "float32"))
            gv0 = R.exp(lv1)
            R.output(gv0)
        return gv0
    """
    (x,) = arrays((2, 3))

    result = compiled(text)["main"](x)

    np.testing.assert_allclose(result, np.exp(x.T), rtol=1e-6)


SOFTMAX_OF_SQUARES = """
@R.function
def main(x: R.Tensor((3, 4), "float32")):
    with R.dataflow():
        lv0 = R.multiply(x, x)
        gv0 = R.nn.softmax(lv0, axis=-1)
        R.output(gv0)
    return gv0
"""


@pytest.mark.parametrize("size", [1e-7, 1.0, 1e5, 1e9, 1e17])
def test_a_softmax_of_products_adds_up_to_one_however_large_they_are(size: float) -> None:
    x = np.random.default_rng(0).uniform(size, 2 * size, (3, 4)).astype(np.float32)

    result = compiled(SOFTMAX_OF_SQUARES)["main"](x)

    np.testing.assert_allclose(result.sum(-1), np.ones(3), rtol=1e-6)
