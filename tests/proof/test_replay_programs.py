"""Programs of every kind, optimized, proved and replayed; ``pytest --replay`` does so with all."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from bench.llama import Widths, decode_step
from bench.resnet import basic_block
from bench.transformer import Sizes, encoder
from relax_egraph.errors import ReplayError
from relax_egraph.proof.replay import replay
from tests.support.replaying import proof_of, tolerance_in

PERCEPTRON = """
@R.function
def main(x: R.Tensor(("n", 12), "float32")):
    with R.dataflow():
        lv0 = R.matmul(x, metadata["relax.expr.Constant"][0])
        lv1 = R.add(lv0, metadata["relax.expr.Constant"][1])
        lv2 = R.nn.relu(lv1)
        lv3 = R.matmul(lv2, metadata["relax.expr.Constant"][2])
        gv0 = R.multiply(lv3, R.const(1.0, "float32"))
        R.output(gv0)
    return gv0
"""

MIRRORED = """
@R.function
def main(x: R.Tensor(("n", 4), "float32")):
    with R.dataflow():
        lv = R.negative(x)
        gv = R.cos(lv)
        R.output(gv)
    return gv
"""

LOW_RANK = """
@R.function
def main(x: R.Tensor(("s", 128), "float32")):
    with R.dataflow():
        lv0 = R.matmul(x, metadata["relax.expr.Constant"][0])
        gv0 = R.matmul(lv0, metadata["relax.expr.Constant"][1])
        R.output(gv0)
    return gv0
"""

FOLDED = """
@R.function
def main(x: R.Tensor(("n", "s"), "float32")):
    with R.dataflow():
        lv0 = R.reshape(x, R.shape([n, s // 8, 8]))
        lv1 = R.exp(lv0)
        gv0 = R.reshape(lv1, R.shape([n, (s // 8) * 8]))
        R.output(gv0)
    return gv0
"""

COS_IS_EVEN = '(rewrite (R.cos (R.negative x)) (R.cos x) :name "cos-is-even")'


def parsed(text: str, *shapes: tuple[int, ...]) -> rx.IRModule:
    """A program whose constants have these shapes."""
    random = np.random.default_rng(0)
    return rx.parse(text, constants=[random.normal(size=s).astype(np.float32) for s in shapes])


PROGRAMS: dict[str, tuple[Callable[[], rx.IRModule], dict[str, Any]]] = {
    "perceptron": (lambda: parsed(PERCEPTRON, (12, 8), (8,), (8, 3)), {}),
    "encoder": (lambda: encoder(Sizes(1)), {}),
    "convolutions": (lambda: basic_block(1, 8, 6), {}),
    "decode step": (lambda: decode_step(Widths(32, 4, 2, 48)), {}),
    "user's rule": (lambda: parsed(MIRRORED), {"rules": [COS_IS_EVEN]}),
    "variants": (
        lambda: parsed(LOW_RANK, (128, 16), (16, 128)),
        {"variants": {"s": [(1, 1), (2, 64), (65, None)]}},
    ),
    "tolerance": (
        lambda: parsed(LOW_RANK, (128, 512), (512, 128)),
        {"tolerance": 0.02, "hints": {"s": 1}},
    ),
    "assumption": (lambda: parsed(FOLDED), {"assume": ["s % 8 == 0", "s >= 8"]}),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_optimized_is_proved_and_replayed(name: str) -> None:
    make, options = PROGRAMS[name]
    explanation = rx.explain(make(), **options)

    for region in explanation.regions:
        for trace in proof_of(region, tolerance_in(explanation)).traces:
            replayed = replay(trace)

            assert replayed.steps == len(trace.steps) > 0
            assert replayed.uncomputed == ()


def test_a_fact_that_is_false_is_seen_where_it_is_read() -> None:
    rectified = MIRRORED.replace("R.negative(x)", "R.sin(x)").replace("R.cos(lv)", "R.nn.relu(lv)")
    false = '(rule ((= t (R.sin x))) ((is-nonnegative t)) :name "sin-is-positive")'

    (trace,) = rx.explain(rx.parse(rectified), [false]).traces

    with pytest.raises(ReplayError) as error:
        replay(trace)
    _, _, deduced, wrong, *_ = str(error.value).splitlines()
    assert deduced == "  reads (is-nonnegative sin(x)), deduced by sin-is-positive (<rules>:1:1)"
    assert wrong == "  by `rules check` sin-is-positive (<rules>:1:1) is unsound"
    assert error.value.rules == ("sin-is-positive",)
