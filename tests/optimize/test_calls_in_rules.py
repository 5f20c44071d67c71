"""Calls of functions below the graph as terms of rules: extraction decides by their prices."""

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import relax_egraph as rx
from relax_egraph.errors import RuleError
from relax_egraph.extract import PricedCall
from relax_egraph.proof.text import step_lines

Array = npt.NDArray[Any]

MODULE = rx.parse("""
@R.function
def main(x: R.Tensor((6, 4), "float64"), w: R.Tensor((4, 5), "float64")):
    with R.dataflow():
        y = R.nn.relu(R.matmul(x, w))
        R.output(y)
    return y
""")

BY_PRODUCT = """
; x @ w by a function of the user
; float: reassociates
(rewrite (R.matmul x w) (R.call_dps_packed "test.product" (vec-of x w)) :name "by-product")
"""

X = np.random.default_rng(0).normal(size=(6, 4))
W = np.random.default_rng(1).normal(size=(4, 5))
EXPECTED = np.maximum(X @ W, 0)


def product(x: Array, w: Array, out: Array) -> None:
    np.matmul(x, w, out=out)


def run(module: rx.IRModule, *args: Array, **packed: Any) -> Array:
    functions = {"test.product": product, **packed}
    return rx.VirtualMachine(rx.build(module), packed=functions)["main"](*args)


def test_a_call_is_chosen_where_it_is_cheap_and_not_where_it_is_dear() -> None:
    cheap = rx.optimize(MODULE, [BY_PRODUCT], prices=rx.Prices(calls={"test.product": 1e-9}))
    dear = rx.optimize(MODULE, [BY_PRODUCT], prices=rx.Prices(calls={"test.product": 1e-3}))

    call = """R.call_dps_packed(
                "test.product", (x, w), out_sinfo=R.Tensor((6, 5), "float64")
            )"""
    assert call in cheap.script()
    assert "call_dps_packed" not in dear.script()
    np.testing.assert_allclose(run(cheap, X, W), EXPECTED)
    np.testing.assert_allclose(run(dear, X, W), EXPECTED)


def test_the_price_of_a_call_is_a_function_of_shapes_and_dtypes() -> None:
    seen: list[PricedCall] = []

    def seconds(call: PricedCall) -> float:
        seen.append(call)
        return 1e-9 if call.dtype == "float64" and call.shapes[0] == (6, 4) else 1.0

    best = rx.optimize(MODULE, [BY_PRODUCT], prices=rx.Prices(calls={"test.product": seconds}))

    assert "test.product" in best.script()
    assert set(seen) == {
        PricedCall(((6, 4), (4, 5)), ("float64", "float64"), (6, 5), "float64"),
    }


def test_a_call_in_the_program_is_matched_as_any_operator() -> None:
    module = rx.parse("""
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def twice(x: T.Buffer((T.int64(8),), "float32"), y: T.Buffer((T.int64(8),), "float32")):
        for i in range(8):
            with T.sblock("twice"):
                v_i = T.axis.spatial(8, i)
                y[v_i] = x[v_i] * T.float32(2)

    @R.function
    def main(x: R.Tensor((8,), "float32")):
        cls = Module
        with R.dataflow():
            a = R.exp(x)
            b = R.call_tir(cls.twice, (a,), out_sinfo=R.Tensor((8,), "float32"))
            c = R.add(b, a)
            R.output(c)
        return c
""")
    rule = """
; twice x = x + x
; float: exact
(rewrite (R.call_tir "twice" (vec-of x)) (R.add x x))
"""
    x = np.arange(8, dtype=np.float32)

    best = rx.optimize(module, [rule])

    assert len([f for f in best.functions if f.startswith("fused")]) == 1
    assert "call_tir" not in best.script()
    np.testing.assert_allclose(run(best, x), 3 * np.exp(x), rtol=1e-6)


def test_a_rule_makes_a_call_of_a_loop_function_of_the_module() -> None:
    module = rx.parse("""
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def twice(var_x: T.handle, var_y: T.handle):
        n = T.int64()
        x = T.match_buffer(var_x, (n,), "float32")
        y = T.match_buffer(var_y, (n,), "float32")
        for i in range(n):
            with T.sblock("twice"):
                v_i = T.axis.spatial(n, i)
                y[v_i] = x[v_i] + x[v_i]

    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        with R.dataflow():
            c = R.exp(R.add(x, x))
            R.output(c)
        return c
""")
    rule = '(rewrite (R.add x x) (R.call_tir "twice" (vec-of x)))'
    x = np.arange(8, dtype=np.float32)

    best = rx.optimize(module, [rule], prices=rx.Prices(calls={"twice": 0}, kernel=free_alone))

    assert "cls.twice, (x,), out_sinfo=" in best.script()
    np.testing.assert_allclose(run(best, x), np.exp(2 * x), rtol=1e-6)


def free_alone(kernel: Any, _: Any, seconds: float) -> float:
    """Seconds of a kernel; one of several operators is dear."""
    return seconds if len(kernel.steps) == 1 else 1.0


def test_a_rule_says_what_a_packed_function_of_the_program_returns() -> None:
    module = rx.parse("""
@R.function
def main(x: R.Tensor((8,), "float32")):
    with R.dataflow():
        a = R.call_pure_packed("test.relu", x, sinfo_args=R.Tensor((8,), "float32"))
        b = R.call_pure_packed("test.other", x, sinfo_args=R.Tensor((8,), "float32"))
        y = R.add(a, b)
        R.output(y)
    return y
""")
    rule = '(rewrite (R.call_pure_packed "test.relu" (vec-of x)) (R.nn.relu x))'

    best = rx.optimize(module, [rule])

    assert "test.relu" not in best.script()
    assert "test.other" in best.script()


def test_a_call_within_the_right_side_has_the_shape_that_the_rule_writes() -> None:
    rule = """
(rewrite (R.nn.relu (R.matmul x w))
  (R.nn.relu (R.call_pure_packed "test.pure" (vec-of x w) s "float64"))
  :when ((= s (shape-of (R.matmul x w)))))
"""

    best = rx.optimize(MODULE, [rule], prices=rx.Prices(calls={"test.pure": 0.0}))

    assert '"test.pure", x, w, sinfo_args=' in best.script()
    np.testing.assert_allclose(run(best, X, W, **{"test.pure": np.matmul}), EXPECTED)


def test_equal_calls_run_once_and_calls_of_other_results_apart() -> None:
    module = rx.parse("""
@R.function
def main(x: R.Tensor((2,), "float32")):
    with R.dataflow():
        a = R.call_dps_packed("test.fill", (x,), out_sinfo=R.Tensor((3,), "float32"))
        b = R.call_dps_packed("test.fill", (x,), out_sinfo=R.Tensor((3,), "float32"))
        c = R.call_dps_packed("test.fill", (x,), out_sinfo=R.Tensor((4,), "float32"))
        y = (R.add(a, b), c)
        R.output(y)
    return y
""")
    calls: list[tuple[int, ...]] = []

    def fill(x: Array, out: Array) -> None:
        calls.append(out.shape)
        out[...] = x[0]

    best = rx.optimize(module)
    sums, alone = run(best, np.ones(2, np.float32), **{"test.fill": fill})

    assert sorted(calls) == [(3,), (4,)]
    np.testing.assert_array_equal(sums, np.full(3, 2.0))
    np.testing.assert_array_equal(alone, np.ones(4))


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            '(rewrite (R.exp x) (R.nn.relu (R.call_dps_packed "f" (vec-of x))))',
            """<rules>:1:31: the shape and dtype of this R.call_dps_packed are not known
    (rewrite (R.exp x) (R.nn.relu (R.call_dps_packed "f" (vec-of x))))
                                  ^
write it: (R.call_dps_packed name operands shape dtype)""",
        ),
        (
            '(rewrite (R.exp x) (R.call_dps_packed "f" x))',
            """<rules>:1:43: operands of R.call_dps_packed needs a Tensors, x is a Tensor
    (rewrite (R.exp x) (R.call_dps_packed "f" x))
                                              ^
it is used as a Tensor at <rules>:1:17""",
        ),
        (
            "(rewrite (R.exp x) (R.call_dps_packed f (vec-of x)))",
            """<rules>:1:39: f is unbound: it occurs neither on the left side nor in :when
    (rewrite (R.exp x) (R.call_dps_packed f (vec-of x)))
                                          ^""",
        ),
        (
            '(rewrite (R.exp x) (R.call_packed "f" (vec-of x)))',
            """<rules>:1:20: unknown operator R.call_packed
    (rewrite (R.exp x) (R.call_packed "f" (vec-of x)))
                       ^
did you mean R.call_dps_packed?""",
        ),
    ],
)
def test_a_call_that_is_written_wrong_is_refused(rule: str, message: str) -> None:
    with pytest.raises(RuleError) as refused:
        rx.rules.load(rule)

    assert str(refused.value) == message


def test_a_demanded_rewrite_has_no_other_ruleset() -> None:
    rule = "(rewrite (R.exp x) (R.tanh x) :demand :ruleset mine)"

    with pytest.raises(RuleError) as refused:
        rx.rules.load("(ruleset mine)" + rule)

    assert (
        str(refused.value)
        == """<rules>:1:62: :demand is the ruleset demand
    (ruleset mine)(rewrite (R.exp x) (R.tanh x) :demand :ruleset mine)
                                                                 ^
it runs before all others; leave :ruleset out"""
    )


def test_a_call_that_a_rule_makes_needs_a_price() -> None:
    message = (
        "rule by-product calls test.product, which has no price; "
        'pass prices=rx.Prices(calls={"test.product": …}), in seconds'
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        rx.optimize(MODULE, [BY_PRODUCT])


def test_a_loop_function_that_a_rule_calls_is_in_the_module() -> None:
    rule = '(rewrite (R.nn.relu x) (R.call_tir "ramp" (vec-of x)) :name "ramp")'

    with pytest.raises(ValueError, match=r"^rule ramp calls ramp; .* of the module are: none$"):
        rx.optimize(MODULE, [rule], prices=rx.Prices(calls={"ramp": 0.0}))


def test_a_rewrite_that_is_demanded_happens_whatever_it_costs() -> None:
    rule = BY_PRODUCT.replace(":name", ":demand :name")

    best = rx.optimize(MODULE, [rule])
    dear = rx.optimize(MODULE, [rule], prices=rx.Prices(calls={"test.product": 1.0}))

    assert "test.product" in best.script()
    assert "test.product" in dear.script()
    np.testing.assert_allclose(run(best, X, W), EXPECTED)


def test_what_others_need_of_a_demanded_left_side_stays() -> None:
    module = rx.parse("""
@R.function
def main(x: R.Tensor((6, 4), "float64"), w: R.Tensor((4, 5), "float64")):
    with R.dataflow():
        a = R.matmul(x, w)
        b = R.nn.relu(a)
        y = (a, b)
        R.output(y)
    return y
""")
    rule = """
(rewrite (R.nn.relu (R.matmul x w)) (R.call_dps_packed "test.relu_product" (vec-of x w)) :demand)
"""

    def relu_product(x: Array, w: Array, out: Array) -> None:
        out[...] = np.maximum(x @ w, 0)

    best = rx.optimize(module, [rule])
    plain, positive = run(best, X, W, **{"test.relu_product": relu_product})

    assert "test.relu_product" in best.script()
    assert "R.matmul(x, w)" in best.script()
    np.testing.assert_allclose(plain, X @ W)
    np.testing.assert_allclose(positive, EXPECTED)


def test_a_demanded_rewrite_runs_before_rules_that_would_take_its_left_side_away() -> None:
    module = rx.parse("""
@R.function
def main(x: R.Tensor((8,), "float32")):
    with R.dataflow():
        y = R.exp(R.log(R.exp(x)))
        R.output(y)
    return y
""")
    rule = '(rewrite (R.log (R.exp x)) (R.call_pure_packed "test.same" (vec-of x)) :demand)'

    best = rx.optimize(module, [rule], fast_math=True)

    assert "test.same" in best.script()


def test_reasons_name_the_function() -> None:
    prices = rx.Prices(calls={"test.product": 1e-9})

    reasons = rx.explain(MODULE, [BY_PRODUCT], prices=prices, proof=True)
    why_not = rx.why_not("by-product", MODULE, rules=[BY_PRODUCT], prices=rx.Prices(calls=DEAR))

    rows = [line.replace("│", " ").split() for line in str(reasons).splitlines()]
    assert ["0", "test.product", "0.001", "µs", "by-product"] in rows
    (trace,) = reasons.traces
    assert step_lines(trace, trace.steps[0]) == ["  matmul(x, w)", "→ test.product(x, w)"]
    assert "fired once at lv" in str(why_not)


DEAR = {"test.product": 1.0}
