"""The workloads of the bench: what they are, what they mean, and what is measured of one."""

from collections.abc import Sequence

import numpy as np
import pytest

from bench import measure, peers
from bench.ours import as_written, optimized
from bench.peers import numpy as numpy_peer
from bench.program import Array, NotRunnable, program_of
from bench.reference import error_of, exact
from bench.result import OURS
from bench.system import Bind, Bound
from bench.workloads import workloads
from relax_egraph.ir.module import IRModule

SMALL = [
    "gelu(x·w+b)+x (1, 4096)",
    "softmax (64, 1024)",
    "layernorm (64, 1024)",
    "rmsnorm (64, 1024)",
    "matmul 128³",
    "matmul 1×784×128, weight",
    "MLP 784-128-10, n = 1",
    "MLP 784-128-10, n = 64",
]


@pytest.mark.parametrize("name", SMALL)
def test_numpy_and_we_compute_what_the_reference_says(name: str) -> None:
    task = workloads()[name].make()
    (module,) = task.modules
    expected = exact(module, task.inputs)
    systems = (optimized, as_written, numpy_peer.compiled)

    errors = [error_of(compiled(module, 1)(task.inputs).result(), expected) for compiled in systems]

    assert expected.dtype == np.float64
    assert all(0 < error < measure.TOLERANCE for error in errors), errors


def test_an_error_is_relative_to_the_largest_magnitude_and_sees_shapes_and_nans() -> None:
    expected = np.array([[1.0, -4.0]])

    assert error_of(np.array([[2.0, -4.0]]), expected) == 0.25
    assert error_of(np.array([1.0, -4.0]), expected) == float("inf")
    assert error_of(np.array([[1.0, np.nan]]), expected) == float("inf")


def test_the_perceptron_is_one_module_for_any_number_of_rows() -> None:
    one, many = (workloads()[f"MLP 784-128-10, n = {n}"].make() for n in (1, 64))

    assert one.modules[0] is many.modules[0]
    assert [x.shape for x in (*one.inputs, *many.inputs)] == [(1, 784), (64, 784)]


def test_weights_that_are_to_come_from_memory_fit_no_cache_together() -> None:
    task = workloads()["matmul 1×4096×4096, weight in memory"].make()
    weights = [next(iter(program_of(m).constants.values())) for m in task.modules]

    assert sum(w.nbytes for w in weights) > 128 << 20
    assert not any(np.array_equal(weights[0], w) for w in weights[1:])


def test_one_thread_is_measured_beside_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "installed", lambda: {"numpy": ""})

    result = measure.measure("gelu(x·w+b)+x (1, 4096)", None, threads=1, seconds=0)

    assert (result.limit, result.amount) == ("copy", 8 * 4096)
    assert set(result.seconds) == set(result.errors) == {OURS, "numpy"}
    assert set(result.rates) == {"copy", "copy past caches"}
    assert set(result.ratios) == {"peer", "limit"}
    assert result.wanted == {"peer": 1.3}
    assert min(*result.seconds.values(), *result.rates.values()) > 0


def test_a_result_of_ours_that_is_wrong_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "TOLERANCE", 1e-12)

    with pytest.raises(NotRunnable, match=r"^matmul 128³: relax-egraph: its error is "):
        measure.measure("matmul 128³", None, threads=1, seconds=0)


def test_a_peer_whose_result_is_wrong_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def halved(module: IRModule, threads: int) -> Bind:
        bind = numpy_peer.compiled(module, threads)

        def bound(inputs: Sequence[Array]) -> Bound:
            right = bind(inputs)
            return Bound(right.run, lambda: right.result() / 2)

        return bound

    monkeypatch.setattr(peers, "installed", lambda: {"numpy": "", "odd": ""})
    monkeypatch.setattr(peers, "peer", {"numpy": numpy_peer.compiled, "odd": halved}.__getitem__)

    result = measure.measure("softmax (64, 1024)", None, threads=1, seconds=0)

    assert set(result.seconds) == {OURS, "numpy"}
    assert result.left_out == {"odd": "its error is 5.0e-01"}


def test_a_peer_that_does_not_run_a_module_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(module: IRModule, threads: int) -> Bind:
        raise NotRunnable("no operator nn.softmax")

    def fails(module: IRModule, threads: int) -> Bind:
        raise KeyError("softmax\nand more")

    monkeypatch.setattr(peers, "installed", lambda: {"odd": "", "broken": ""})
    monkeypatch.setattr(peers, "peer", {"odd": refused, "broken": fails}.__getitem__)

    result = measure.measure("softmax (64, 1024)", None, threads=1, seconds=0)

    reasons = {"odd": "no operator nn.softmax", "broken": "KeyError: 'softmax\\nand more'"}
    assert result.left_out == reasons
    assert set(result.ratios) == {"limit"}
