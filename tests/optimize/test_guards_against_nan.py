"""Guards against NaN that a program cannot have are none."""

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.optimize.run import optimize
from relax_egraph.proof.replay import replay
from relax_egraph.script import parse
from tests.support.replaying import proof_of

PARAMS = 'x: R.Tensor((n, 4), "float32"), i: R.Tensor((n, 4), "int64"), m: R.Tensor((n, 4), "bool")'

SCORES = 's = R.add(R.astype(i, "float32"), R.where(m, R.const(0.0), R.const(-3.4028235e38)))'
GUARDED = ("p = R.nn.softmax(s)", "g = R.isnan(p)", "y = R.where(g, R.const(0.0), p)")


def program(*bindings: str) -> rx.IRModule:
    """A function of `PARAMS` that gives the last of `bindings`, which is of ``y``."""
    lines = "".join(f"        {line}\n" for line in bindings)
    return parse(
        f"""
@R.function
def main({PARAMS}):
    n = T.int64()
    with R.dataflow():
{lines}        R.output(y)
    return y
"""
    )


def is_guarded(module: rx.IRModule) -> bool:
    """Whether the optimized program tests for NaN; it must compute what `module` does."""
    random = np.random.default_rng(0)
    x = random.uniform(-3, 3, (5, 4)).astype(np.float32)
    arrays = x, random.integers(-50, 50, (5, 4)), x > -2
    optimized = optimize(module)

    expected = evaluate(module, "main", *arrays)
    np.testing.assert_allclose(evaluate(optimized, "main", *arrays), expected, 1e-5, 1e-5)
    return "isnan" in optimized.script()


def test_the_guard_of_finite_scores_is_none() -> None:
    assert not is_guarded(program(SCORES, *GUARDED))
    assert "where(g" not in optimize(program(SCORES, *GUARDED)).script()


@pytest.mark.parametrize(
    "scores",
    [
        "s = R.multiply(x, R.const(2.0))",
        's = R.add(R.astype(i, "float32"), R.where(m, R.const(0.0), R.const(float("-inf"))))',
        's = R.log(R.astype(i, "float32"))',
        's = R.divide(R.const(1.0), R.astype(i, "float32"))',
        's = R.sqrt(R.astype(i, "float32"))',
        's = R.exp(R.astype(i, "float32"))',
        's = R.mean(R.astype(i, "float32"), axis=0, keepdims=True)',
        's = R.power(R.astype(i, "float32"), R.const(0.5))',
        "s = R.take(R.const([1.0, float('nan'), 2.0]), i)",
    ],
)
def test_a_guard_that_may_be_needed_stays(scores: str) -> None:
    assert "isnan" in optimize(program(scores, "p = R.nn.softmax(s)", "y = R.isnan(p)")).script()


def test_two_masks_may_leave_nothing() -> None:
    mask = "w = R.where(m, R.const(0.0), R.const(-3.4028235e38))"
    once, twice = 's = R.add(R.astype(i, "float32"), w)', "t = R.add(s, w)"

    assert not is_guarded(program(mask, once, *GUARDED))
    assert is_guarded(program(mask, once, twice, "p = R.nn.softmax(t)", *GUARDED[1:]))


@pytest.mark.parametrize(
    "value",
    [
        "R.add(f, R.const(-3.4028235e38))",
        "R.subtract(f, R.multiply(f, f))",
        "R.divide(f, R.add(R.multiply(f, f), R.const(0.5)))",
        "R.rsqrt(R.add(R.mean(R.power(f, R.const(2.0)), axis=1, keepdims=True), R.const(1e-6)))",
        "R.sqrt(R.sum(R.abs(f), axis=1))",
        "R.negative(R.maximum(R.sigmoid(f), R.tanh(f)))",
        "R.minimum(R.cos(f), R.const(0.25))",
        "R.concat((f, R.nn.relu(f)), axis=1)",
        "R.matmul(f, R.permute_dims(f, axes=[1, 0]))",
        "R.take(R.const([1.0, -3.0, 2.0]), R.abs(i) % 3)",
        "R.nn.gelu(R.nn.rms_norm(f, R.const([1.0, 2.0, 3.0, 4.0]), axes=[1], epsilon=1e-5))",
        "R.split(R.nn.silu(f), 2, axis=1)[1]",
        'R.multiply(R.subtract(R.const(1.0), R.astype(m, "float32")), R.const(-3.4028235e38))',
        'R.match_cast(f, R.Tensor((n, 4), "float32"))',
    ],
)
def test_what_is_finite_is_known_to_be(value: str) -> None:
    assert not is_guarded(program('f = R.astype(i, "float32")', f"s = {value}", "y = R.isnan(s)"))


def test_a_region_knows_what_earlier_ones_have_computed() -> None:
    module = program(*_long())

    assert len(rx.explain(module).regions) > 1
    assert not is_guarded(module)


def test_the_proof_of_a_later_region_replays() -> None:
    for region in rx.explain(program(*_long())).regions:
        for trace in proof_of(region).traces:
            replay(trace)


def _long() -> list[str]:
    """A program of several regions, of which the first alone reads integers."""
    steps = [
        f"s{k} = R.nn.softmax(R.add(R.sin(R.multiply(s{k - 1}, R.const({k}.5))), s{k - 1}))"
        for k in range(1, 40)
    ]
    return ['s0 = R.astype(i, "float32")', *steps, "g = R.isnan(s39)", "y = R.where(g, s0, s39)"]


def test_attention_of_masked_tokens_is_attention() -> None:
    """As exporters write it: scores of embedded tokens, a finite mask, a guard against NaN."""
    module = parse(
        """
@R.function
def main(i: R.Tensor((2, s), "int64"), m: R.Tensor((2, 1, s, s), "bool")):
    s = T.int64()
    with R.dataflow():
        e = R.take(R.const([[0.5, -1.0], [2.0, 0.25], [-0.75, 1.5]]), i, axis=0)
        q = R.reshape(e, R.shape([2, 1, s, 2]))
        scores = R.matmul(q, R.permute_dims(q, axes=[0, 1, 3, 2]))
        masked = R.add(scores, R.where(m, R.const(0.0), R.const(-3.4028235e38)))
        p = R.nn.softmax(masked, axis=3)
        y = R.matmul(R.where(R.isnan(p), R.const(0.0), p), q)
        R.output(y)
    return y
"""
    )
    i, m = np.array([[0, 1, 2], [2, 2, 0]]), np.tril(np.ones((2, 1, 3, 3), bool))

    optimized = optimize(module)

    assert "R.nn.attention" in optimized.script()
    assert "isnan" not in optimized.script()
    np.testing.assert_allclose(
        evaluate(optimized, "main", i, m), evaluate(module, "main", i, m), 1e-6, 1e-6
    )
