"""The loops that show what the machine can do: they do what they say, and nothing more."""

import numpy as np
import pytest

from bench.limits import limits_of
from bench.workloads import drawn, workloads
from relax_egraph.lower.emit.target import Target, host, portable
from relax_egraph.lower.jit.machine_code import assembly
from relax_egraph.lower.runtime.limits import ACCUMULATORS, UNROLLED, limit_kernels, limit_text

LANES = host().lanes()
STEP = LANES * UNROLLED


@pytest.mark.parametrize("name", ["copy", "copy_past_caches"])
@pytest.mark.parametrize("count", [0, STEP, 3 * STEP, 3 * STEP + 1])
def test_a_copy_moves_whole_turns_and_leaves_the_rest(name: str, count: int) -> None:
    x, y = drawn(4 * STEP), drawn(4 * STEP, seed=1)
    whole = count // STEP * STEP
    expected = np.concatenate([x[:whole], y[whole:]])

    limit_kernels()[name](x, y, count)

    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("count", [0, STEP, 5 * STEP])
def test_a_read_sums_every_element(count: int) -> None:
    x, out = np.arange(5 * STEP, dtype=np.float32), np.ones(STEP, np.float32)

    limit_kernels()["read"](x, out, count)

    np.testing.assert_array_equal(out, x[:count].reshape(-1, STEP).sum(axis=0))


def test_every_sum_of_multiply_adds_is_kept() -> None:
    start = drawn(ACCUMULATORS * LANES)
    out, expected = start.copy(), start
    for _ in range(3):
        expected = expected * np.float32(0.5) + np.float32(0.25)

    limit_kernels()["multiply_add"](out, 3)

    np.testing.assert_allclose(out, expected, rtol=1e-6)


@pytest.mark.parametrize("target", [host(), portable("avx2", "fma"), portable()])
def test_multiply_adds_stay_in_registers(target: Target) -> None:
    text = assembly(limit_text("multiply_add", target), target)

    assert "(%rsp)" not in text


def test_the_limits_of_a_task_do_as_much_as_it() -> None:
    found = {
        name: {loop: amount for loop, (_, amount) in limits_of(workloads()[name].make()).items()}
        for name in ("softmax (64, 1024)", "matmul 1×784×128, weight")
    }

    assert found == {
        "softmax (64, 1024)": {"copy": 8.0 * 64 * 1024, "copy past caches": 8.0 * 64 * 1024},
        "matmul 1×784×128, weight": {"read": 4.0 * 784 * 128},
    }
