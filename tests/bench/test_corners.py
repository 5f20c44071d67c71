"""Single operators as workloads, and workloads that are compiled for another target."""

from collections.abc import Sequence

import pytest

from bench import measure, peers
from bench.corners import corners
from bench.limits import limits_of
from bench.ours import optimized
from bench.reference import error_of, exact
from bench.result import OURS
from bench.system import Array, Bind, Bound, Compile
from relax_egraph.ir import IRModule
from relax_egraph.lower.emit.target import host
from relax_egraph.lower.jit.processors import processor
from relax_egraph.lower.runtime.limits import flops_per_turn

SMALL = [
    "softmax (4096, 8)",
    "mean 2×2 s2, 128×56²",
    "max of all, 2048×7²",
    "resize nearest to 56², 128×28²",
    "conv 2×2 transposed, s2, 128×28²",
    "depthwise 5×5, 240×14²",
    "x·y+x, int8 1024²",
    "softmax, float64 64×1024",
    "matmul int32 256³",
]
NARROW = "x86-64-v3"
"""A target with vectors of 256 bits."""

needs_avx2 = pytest.mark.skipif(host().vector_bits < 256, reason="needs AVX2")


@pytest.mark.parametrize("name", SMALL)
def test_a_corner_is_computed_as_the_reference_says(name: str) -> None:
    task = corners()[name].make()
    (module,) = task.modules

    result = optimized(module, 1)(task.inputs).result()

    assert task.amount > 0
    assert error_of(result, exact(module, task.inputs)) < measure.TOLERANCE


def test_a_system_that_computes_integers_in_float32_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def in_floats(inputs: Sequence[Array]) -> Bound:
        x, y = (operand.astype("float32") for operand in inputs)
        return Bound(lambda: None, lambda: (x @ y).astype("int32"))

    def compiled(module: IRModule, threads: int) -> Bind:
        return in_floats

    def peer(name: str) -> Compile:
        return compiled

    monkeypatch.setattr(peers, "installed", lambda: ["in floats"])
    monkeypatch.setattr(peers, "peer", peer)

    result = measure.measure("matmul int32 256³", None, 1, 0.001)

    assert result.left_out == {"in floats": "its integers are not exact"}


def test_a_transposed_convolution_counts_its_products() -> None:
    task = corners()["conv 4×4 transposed, s2, 64×32²"].make()

    assert task.amount == 2 * (32 * 32 * 64) * (32 * 4 * 4)


@needs_avx2
def test_a_workload_is_compiled_for_a_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "installed", lambda: {"numpy": ""})

    result = measure.measure("matmul 128³", None, threads=1, seconds=0, target=NARROW)

    assert set(result.seconds) == {OURS, "numpy"}


@needs_avx2
def test_the_limit_of_a_target_is_that_of_its_vectors() -> None:
    task = corners()["matmul int32 256³"].make()
    target = processor(NARROW)

    ((run, amount),) = limits_of(task, target).values()

    run()
    assert amount % flops_per_turn(target) == 0
    assert flops_per_turn(target) == 2 * 12 * 8


def test_peers_are_held_to_the_vectors_of_the_target() -> None:
    whole, narrow = (peers.environment(1, bits) for bits in (512, 256))

    assert narrow.keys() - whole.keys() == {
        *("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "OPENBLAS_CORETYPE"),
        "NPY_DISABLE_CPU_FEATURES",
    }
    assert narrow["XLA_FLAGS"] == f"{whole['XLA_FLAGS']} --xla_cpu_max_isa=AVX2"
