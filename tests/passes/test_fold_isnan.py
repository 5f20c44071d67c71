"""Guards against NaN that a program cannot have are none."""

import numpy as np
import pytest

from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import Function
from relax_egraph.ir.walk import bindings_of
from relax_egraph.optimize.run import optimize
from relax_egraph.passes import fold_isnan
from relax_egraph.passes.analyses.finite_ranges import Range, Ranges
from relax_egraph.script import parse
from tests.support.transformed import becomes, stays

PARAMS = 'x: R.Tensor((n, 4), "float32"), i: R.Tensor((n, 4), "int64"), m: R.Tensor((n, 4), "bool")'


def program(*bindings: str) -> str:
    """A function of `PARAMS` that gives the last of `bindings`, which is of ``y``."""
    lines = "".join(f"        {line}\n" for line in bindings)
    return f"""
@R.function
def main({PARAMS}):
    n = T.int64()
    with R.dataflow():
{lines}        R.output(y)
    return y
"""


def range_of(text: str) -> Range | None:
    """What is known of the last binding."""
    main, ranges, last = parse(text)["main"], Ranges(), None
    assert isinstance(main, Function)
    for binding in bindings_of(main.body):
        ranges.bind(binding.var, binding.value)
        last = ranges.of(binding.var)
    return last


def test_the_guard_of_finite_scores_is_none() -> None:
    scores = 's = R.add(R.astype(i, "float32"), R.where(m, R.const(0.0), R.const(-3.4028235e38)))'
    softmax = "p = R.nn.softmax(s)"
    becomes(
        fold_isnan,
        program(scores, softmax, "g = R.isnan(p)", "y = R.where(g, R.const(0.0), p)"),
        program(
            *(scores, softmax, 'g = R.broadcast_to(R.const(False, "bool"), R.shape([n, 4]))'),
            "y = R.where(g, R.const(0.0), p)",
        ),
    )


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
    ],
)
def test_a_guard_that_may_be_needed_stays(scores: str) -> None:
    stays(fold_isnan, program(scores, "p = R.nn.softmax(s)", "y = R.isnan(p)"))


def test_two_masks_may_leave_nothing() -> None:
    mask = "w = R.where(m, R.const(0.0), R.const(-3.4028235e38))"
    once, twice = 'a = R.add(R.astype(i, "float32"), w)', "b = R.add(a, w)"

    assert range_of(program(mask, once, "y = R.nn.softmax(a)")) == Range(0.0, 1.0)
    assert range_of(program(mask, once, twice, "y = R.nn.softmax(b)")) is None


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
        "R.take(R.const([1.0, -3.0, 2.0]), i)",
        "R.nn.gelu(R.nn.rms_norm(f, R.const([1.0, 2.0, 3.0, 4.0]), axes=[1], epsilon=1e-5))",
        "R.split(R.nn.silu(f), 2, axis=1)[1]",
    ],
)
def test_values_lie_in_their_range(value: str) -> None:
    text, random = program('f = R.astype(i, "float32")', f"y = {value}"), np.random.default_rng(0)
    x, i = np.zeros((5, 4), np.float32), random.integers(-50, 50, (5, 4))

    found = range_of(text)
    result = evaluate(parse(text), "main", x, i, x > 0)

    assert found is not None
    assert found.low <= float(result.min())
    assert float(result.max()) <= found.high


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
