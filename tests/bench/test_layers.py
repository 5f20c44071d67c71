"""Single layers, and the weights of models, as the bench measures them."""

from io import StringIO

import pytest
from rich.console import Console

from bench.layers import WITHIN, single_layers
from bench.measure import UNITS
from bench.model_weights import Form, Weights, bounds, weights_table
from bench.networks import networks
from bench.ours import optimized
from bench.reference import error_of, exact
from bench.workloads import on_two_threads
from relax_egraph.reasons.accuracy import approximations

AT_THE_LIMIT = Weights(
    Form(80_000_000, 2e-3, 1.9e-3), Form(76_000_000, 1.85e-3, 1.8e-3), Form(19_000_000, 5e-4, 4e-4)
)
COMPUTING = Weights(
    Form(100_000_000, 40e-3, 2e-3), Form(100_000_000, 30e-3, 2e-3), Form(50_000_000, 30e-3, 1e-3)
)


@pytest.mark.parametrize("name", ["attention 12×64, s = 128", "attention 12×64, decode, n = 4096"])
def test_attention_is_counted_and_computed(name: str) -> None:
    task = single_layers()[name].make()
    (module,) = task.modules

    result = optimized(module, 1)(task.inputs).result()

    assert error_of(result, exact(module, task.inputs)) < 1e-5
    if task.limit == "arithmetic":
        assert task.amount == 2 * 2 * 12 * 128 * 128 * 64
    else:
        assert task.amount == 4 * (12 * 64 * (2 * 4096 + 2) + 1)  # and what scores are divided by


def test_a_convolution_within_a_tolerance_takes_fewer_products() -> None:
    rows = single_layers()
    (exact_one,) = rows["conv 3×3, 64×56²"].make().modules
    (allowed,) = rows[f"conv 3×3, 64×56², within {WITHIN:g}"].make().modules

    assert approximations(exact_one) == ()
    assert [a.by for a in approximations(allowed)] == ["F(4, 3)"]


def test_what_is_measured_on_two_threads() -> None:
    asked = {name for name, w in networks().items() if UNITS[True] & w.wanted.keys()}

    assert asked >= {
        *(f"attention 12×64, s = {s}" for s in (128, 512)),
        "conv 3×3, 64×56²",
        "ResNet basic block, 64×56²",
        *(f"encoder, 1 layer, s = {s}" for s in (16, 128, 512)),
        *(f"LLaMA decode, cache {n}" for n in (64, 512, 2048)),
    }


def test_on_two_threads_a_bar_is_kept_within_a_twentieth() -> None:
    assert on_two_threads({"peer": 1.2, "limit": 0.9}) == {
        "peer": 1.2,
        "limit": 0.9,
        "peer on two threads": 1.14,
    }


def test_a_model_that_only_reads_its_weights_says_what_can_be_gained() -> None:
    assert AT_THE_LIMIT.is_at_the_limit
    assert not COMPUTING.is_at_the_limit
    assert bounds([("small", COMPUTING), ("nasrnn", AT_THE_LIMIT)]) == [
        "nasrnn: 97% of the machine's read bandwidth: with weights of float32 no gain is more "
        "than 1.11"
    ]


def test_a_row_has_what_is_read_and_what_fewer_bits_gain() -> None:
    out = StringIO()

    Console(file=out, width=150).print(weights_table([("nasrnn", AT_THE_LIMIT)]))

    row = next(line for line in out.getvalue().splitlines() if "nasrnn" in line)
    assert [cell.strip() for cell in row.strip("│ ").split("│")] == [
        *("nasrnn", "80.0 → 76.0", "40.0 → 41.1", "95% → 97%", "1.08", "1.11"),
        *("19.0", "0.50", "4.00", "0.0e+00"),
    ]
