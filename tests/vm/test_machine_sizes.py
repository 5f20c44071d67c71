"""Sizes of nothing, of much, and of more than there is."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.errors import RunError
from relax_egraph.vm.machine import Engine

ENGINES: tuple[Engine, ...] = ("interpreter", "auto")

TEXT = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32")) -> R.Tensor(("m", "n"), "float32"):
        with R.dataflow():
            s = R.nn.softmax(x, axis=-1)
            y = R.permute_dims(R.multiply(s, R.exp(x)))
            R.output(y)
        return y

    @R.function
    def wide(s: R.Shape(["n"])):
        n = T.int64()
        with R.dataflow():
            x = R.ones(R.shape([n]), "float32")
            y = R.cumsum(R.nn.relu(R.cumsum(x, axis=0)), axis=0)
            z = R.sum(y, axis=0)
            R.output(z)
        return z
"""


def expected(x: Any) -> Any:
    if not x.size:
        return np.empty(x.shape[::-1], np.float32)
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return (powers / powers.sum(axis=-1, keepdims=True) * np.exp(x)).T


@pytest.fixture(scope="module", params=ENGINES)
def vm(request: pytest.FixtureRequest) -> rx.VirtualMachine:
    return rx.VirtualMachine(rx.build(rx.parse(TEXT)), engine=request.param)


@pytest.mark.parametrize(
    "shape", [(0, 0), (0, 5), (5, 0), (1, 1), (3, 1000), (100_000, 3), (1, 500_000)]
)
def test_any_size_that_fits(vm: rx.VirtualMachine, shape: tuple[int, int]) -> None:
    x = np.random.default_rng(0).standard_normal(shape, np.float32)

    result = vm["main"](x)

    np.testing.assert_allclose(result, expected(x), rtol=1e-5, atol=1e-6)


def test_sizes_that_change_from_call_to_call(vm: rx.VirtualMachine) -> None:
    random = np.random.default_rng(1)
    kept: list[tuple[Any, Any]] = []
    for _ in range(100):
        x = random.standard_normal(random.integers(0, 60, 2), np.float32)
        kept.append((vm["main"](x), expected(x)))

    for result, wanted in kept:
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)


def test_memory_that_there_is_not(vm: rx.VirtualMachine) -> None:
    for extent in (1 << 45, 1 << 60, 1 << 62, 1 << 63, 1 << 100, -1, -(1 << 62), -(1 << 80)):
        with pytest.raises(RunError) as error:
            vm["wide"]((extent,))
        assert str(error.value) == f"a storage of {4 * extent} bytes cannot be allocated"

    assert vm["wide"]((4,)) == 1 + 3 + 6 + 10


SHORT = """
import resource, sys
import numpy as np
import relax_egraph as rx
from relax_egraph.errors import RunError
from tests.vm.test_machine_sizes import TEXT

vm = rx.VirtualMachine(rx.build(rx.parse(TEXT)), engine=sys.argv[1], num_threads=1)
assert vm["wide"]((4,)) == 20
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20),) * 2)
for extent in (10_000_000, 40_000_000, 100_000_000):
    for _ in range(3):
        try:
            vm["wide"]((extent,))
        except RunError as error:
            assert str(error) == f"a storage of {4 * extent} bytes cannot be allocated", error
            print("refused")
        else:
            print("done")
assert vm["wide"]((4,)) == 20
print("usable")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs limits on memory")
@pytest.mark.parametrize("engine", ENGINES)
def test_a_process_that_may_not_have_more_goes_on(engine: Engine) -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", SHORT, engine]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    *found, last = done.stdout.split()
    assert last == "usable"
    assert found[-1] == "refused"
