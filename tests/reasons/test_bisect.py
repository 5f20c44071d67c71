"""Planted rules that are wrong are found among the whole book: alone, as pairs, where they show."""

import re
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.errors import RuleError, RunError
from relax_egraph.ir.module import IRModule
from relax_egraph.reasons import bisect as bisecting
from relax_egraph.reasons.bisect import bisect
from relax_egraph.reasons.bisected import Bisected, Raised
from relax_egraph.reasons.difference import Difference
from relax_egraph.reasons.running import interpreted

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((2, 3, 4)).astype(np.float32)


def program(*lines: str, x: str = 'R.Tensor(("n", 4), "float32")') -> IRModule:
    """A function of `x` and `y`, of one type, that returns what is bound last."""
    last = lines[-1].partition(" =")[0]
    bindings = "".join(f"        {line}\n" for line in (*lines, f"R.output({last})"))
    head = f"@R.function\ndef main(x: {x}, y: {x}):\n    with R.dataflow():\n"
    return rx.parse(f"{head}{bindings}    return {last}\n")


SIGMOID = program(
    "a = R.exp(R.negative(x))",
    "b = R.divide(R.const(1.0, 'float32'), R.add(R.const(1.0, 'float32'), a))",
    "c = R.add(R.multiply(b, x), y)",
)

EVEN = '(rewrite (R.exp (R.negative z)) (R.exp z) :name "exp-is-even")'


def names(found: Bisected) -> list[list[str]]:
    return [[culprit.rule.name for culprit in rules] for rules in found.sets]


def test_a_wrong_rule_is_found_among_the_whole_book() -> None:
    even = program("e = R.exp(R.negative(x))", "f = R.add(R.multiply(e, y), x)")

    found = bisect(even, {"x": X, "y": Y}, [EVEN])

    ((culprit,),) = found.sets
    assert (culprit.rule.name, str(culprit.rule.span)) == ("exp-is-even", "<rules>:1:1")
    assert culprit.finding.startswith("unsound by itself")
    assert culprit.verdict.counterexample is not None
    assert found.exceeds
    assert found.by == "reference"
    assert found.remedy == ("exp-is-even",)
    assert len(found.candidates) > 10
    assert "fma-from-add-multiply" in found.candidates
    assert found.tries < 20
    assert found.unresolved == 0
    assert isinstance(found.failure, Difference)
    wrong, right = np.exp(X) * Y + X, np.exp(-X) * Y + X
    worst = np.unravel_index(
        np.argmax(abs(wrong - right) / (abs(right) + abs(right).max())), X.shape
    )
    assert found.failure.at == worst
    assert found.failure.apart == pytest.approx(abs(wrong - right)[worst], rel=1e-5)


def test_what_it_takes_to_get_to_a_wrong_rule_is_in_the_set() -> None:
    gate = '(rewrite (R.nn.silu z) z :name "silu-is-nothing")'

    found = bisect(SIGMOID, [X, Y], [gate])

    (rules,) = found.sets
    assert [c.rule.name for c in rules if c.rule.span.file == "<rules>"] == ["silu-is-nothing"]
    assert rules[0].rule.name == "silu-is-nothing"
    assert rules[0].finding.startswith("unsound by itself")
    assert len(rules) > 1, "the book makes the silu"
    assert all(culprit.finding.startswith(("exact", "sound")) for culprit in rules[1:])
    assert found.remedy == ("silu-is-nothing",), "the book is right without it"


PAIR = """
; |x| = max(x, -x)
; float: exact
(rewrite (R.abs z) (R.maximum z (R.negative z)) :when ((is-float z)) :name "abs-as-maximum")

; of x and -x the first is larger
(rewrite (R.maximum z (R.negative z)) z :name "first-is-larger")
"""


def test_rules_that_are_harmless_alone_are_found_together() -> None:
    module = program("a = R.abs(x)", "b = R.add(R.multiply(a, y), x)")

    found = bisect(module, {"y": Y, "x": X}, [PAIR])

    ((wrong, right),) = found.sets
    assert (wrong.rule.name, right.rule.name) == ("first-is-larger", "abs-as-maximum")
    assert wrong.finding.startswith("unsound by itself")
    assert right.finding == "exact by itself: it only exposes what others do"
    assert found.remedy == ("first-is-larger",)


def test_two_rules_that_are_wrong_each_by_itself_are_two_sets() -> None:
    odd = '(rewrite (R.cos (R.negative z)) (R.sin z) :name "cos-is-sin")'
    module = program("a = R.exp(R.negative(x))", "b = R.cos(R.negative(y))", "c = R.add(a, b)")

    found = bisect(module, [X, Y], [f"{EVEN}\n{odd}"])

    assert sorted(names(found)) == [["cos-is-sin"], ["exp-is-even"]]
    assert sorted(found.remedy) == ["cos-is-sin", "exp-is-even"]


def test_a_rule_that_is_wrong_at_one_size_is_found_there() -> None:
    rule = """
    ; a column that varies has a variance
    (rewrite (R.multiply (R.broadcast_to (R.sign (R.variance z axes k)) s) w) w
      :name "variance-is-positive")
    """
    module = program("a = R.sign(R.variance(x, axis=[0], keepdims=True))", "b = R.multiply(a, y)")

    assert bisect(module, [X, Y], [rule]).sets == ()
    assert names(bisect(module, [X[:1], Y[:1]], [rule])) == [["variance-is-positive"]]


def test_integers_must_be_equal() -> None:
    rule = '(rewrite (R.floor_divide (R.multiply z w) w) z :name "product-over-factor")'
    module = program("a = R.floor_divide(R.multiply(x, y), y)", x='R.Tensor(("n",), "int32")')
    x, y = np.array([7, 1 << 20], np.int32), np.array([3, 1 << 12], np.int32)

    found = bisect(module, [x, y], [rule])

    assert names(found) == [["product-over-factor"]]
    assert found.failure == Difference(0, (1,), "0", "1048576", 1048576.0, 0.0)


def test_an_unsound_rule_that_stops_the_engine_is_found() -> None:
    shapes = '(rewrite (R.exp z) (R.sum z (vec-of 0) false) :name "exp-is-sum")'

    found = bisect(program("a = R.exp(x)", "b = R.add(a, y)"), [X, Y], [shapes])

    assert names(found) == [["exp-is-sum"]]
    assert isinstance(found.failure, Raised)
    assert found.failure.kind == "SaturationError"
    assert "exp-is-sum" in found.failure.message
    assert found.remedy == ("exp-is-sum",)


def test_rounding_is_no_failure_unless_it_is_asked_for() -> None:
    module = program("a = R.add(R.multiply(x, y), y)")
    x, y = RNG.standard_normal((2, 100, 4)).astype(np.float32)

    usual, strict = bisect(module, [x, y]), bisect(module, [x, y], rtol=0, atol=0)

    assert not usual.exceeds
    assert usual.rounding is not None
    assert usual.rounding < 1e-6
    assert usual.summary.startswith("nothing to find: output 0 at ")
    assert (names(strict), strict.by) == ([["fma-from-add-multiply"]], "reference")
    assert strict.sets[0][0].finding == "sound by itself (reassociates)"


def wrong_where(text: str) -> Any:
    """Gives what is built of a module, off by one where its text has `text`."""

    def run(module: IRModule, function: str, args: Any) -> list[Any]:
        return [
            result + (text in module.script()) for result in interpreted(module, function, args)
        ]

    return run


def test_a_rule_that_leads_to_a_wrong_kernel_is_found_by_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bisecting, "built", wrong_where("R.ewise_fma"))

    found = bisect(program("a = R.add(R.multiply(x, y), y)"), [X, Y])

    assert (names(found), found.by) == ([["fma-from-add-multiply"]], "machine")


def test_what_is_wrong_without_any_rule_is_no_rules_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bisecting, "built", wrong_where(""))

    found = bisect(program("a = R.add(R.multiply(x, y), y)"), [X, Y])

    assert (found.exceeds, found.sets, found.remedy) == (True, (), ())
    assert found.summary.startswith("no rule is to blame, it fails without any: output 0 at ")


def test_what_the_reference_cannot_run_is_built() -> None:
    loops = rx.lower_module(program("a = R.exp(R.negative(x))", "b = R.add(a, y)"))

    found = bisect(loops, [X, Y])

    assert (found.by, found.exceeds, found.rounding) == ("machine", False, None)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"x": X}, "inputs lack y of main"),
        ({"x": X, "y": Y, "yy": Y}, "main has no parameter yy; it has x, y; did you mean y?"),
        ([X], "main takes 2 arguments, got 1"),
    ],
)
def test_inputs_that_are_not_those_of_the_function(inputs: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        bisect(SIGMOID, inputs)


def test_what_cannot_be_bisected() -> None:
    with pytest.raises(RunError, match=r"main: parameter y is .* needs"):
        bisect(SIGMOID, [X, Y[:, :2]])
    with pytest.raises(ValueError, match="no function 'other' in the module; there are: main"):
        bisect(SIGMOID, [X, Y], function="other")
    with pytest.raises(RuleError, match=r"unknown operator R\.ex"):
        bisect(SIGMOID, [X, Y], ["(rewrite (R.ex z) z)"])
    plain = rx.parse("@R.function\ndef main(x: R.Tensor((2,), 'float32')):\n    return x\n")
    with pytest.raises(ValueError, match="the model has no operator without effects"):
        bisect(plain, [X[0, :2]])


def test_what_is_found_is_plain_data() -> None:
    found = bisect(program("e = R.exp(R.negative(x))", "f = R.add(e, y)"), [X, Y], [EVEN])

    told = found.as_dict()
    assert told["sets"] == [
        [
            {
                "rule": "exp-is-even",
                "law": "",
                "float_class": "unstated",
                "place": "<rules>:1:1",
                "sound": False,
                "verdict": str(found.sets[0][0].verdict),
                "said": found.sets[0][0].finding,
            }
        ]
    ]
    assert told["failure"] == str(found.failure)
    assert told["remedy"] == ["exp-is-even"]
    assert told["candidates"] == list(found.candidates)
