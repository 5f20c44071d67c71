"""Prices of users decide what optimization chooses."""

import math
from collections.abc import Mapping

import relax_egraph as rx
from relax_egraph.extract.work import Applied
from relax_egraph.ir.kernel import Kernel

SOFTMAX = rx.parse("""
@R.function
def main(x: R.Tensor((8, 256), "float32")):
    with R.dataflow():
        y = R.nn.softmax(x)
        R.output(y)
    return y
""")


def test_an_operator_that_a_user_finds_slow_is_written_out() -> None:
    def slow(applied: Applied) -> float:
        assert applied.operands == ((8, 256),)
        return 1.0

    plain = rx.explain(SOFTMAX)
    priced = rx.explain(SOFTMAX, prices=rx.Prices(operators={"nn.softmax": slow}))

    assert "R.nn.softmax" in plain.module.script()
    assert "R.nn.softmax" not in priced.module.script()
    assert plain.cost < priced.cost < priced.cost_before
    assert priced.cost_before > 1.0


def test_a_kernel_that_is_forbidden_is_not_used() -> None:
    module = rx.parse("""
@R.function
def main(x: R.Tensor((64,), "float32")):
    with R.dataflow():
        y = R.tanh(R.exp(x))
        R.output(y)
    return y
""")

    def one_step(kernel: Kernel, sizes: Mapping[str, int], seconds: float) -> float:
        return seconds if len(kernel.steps) == 1 else math.inf

    best = rx.optimize(module, prices=rx.Prices(kernel=one_step))

    assert len(rx.optimize(module).functions) == 2
    assert list(best.functions) == ["main"]
