"""What rules are worth: the fewest that buy a gain, the share of each, those that are redundant."""

from math import inf

import pytest

import relax_egraph as rx
from bench.transformer import Sizes, encoder
from relax_egraph.egraph.engine import Phase
from relax_egraph.errors import RuleError
from relax_egraph.reasons.gains import CostBisected, bisect_cost, gains
from relax_egraph.reasons.restricted import Costs
from relax_egraph.rules import FAMILIES

SILU = rx.parse("""
@R.function
def main(x: R.Tensor(("n", 64), "float32"), y: R.Tensor(("n", 64), "float32")):
    with R.dataflow():
        a = R.exp(R.negative(x))
        b = R.divide(R.const(1.0, "float32"), R.add(R.const(1.0, "float32"), a))
        c = R.multiply(b, x)
        d = R.add(R.multiply(c, y), y)
        R.output(d)
    return d
""")

SOME = tuple(f for f in FAMILIES if f not in ("canon", "idioms", "fma", "fusion"))
"""Families to leave out, so that there are few rules."""

MLP = rx.parse("""
@R.function
def main(x: R.Tensor(("n", 16), "float32"), w: R.Tensor((16, 32), "float32"),
         b: R.Tensor((32,), "float32"), v: R.Tensor((32, 8), "float32")):
    with R.dataflow():
        h = R.nn.relu(R.add(R.matmul(x, w), b))
        y = R.matmul(h, v)
        R.output(y)
    return y
""")


def cost(module: rx.IRModule, *without: str) -> float:
    return rx.explain(module, without=(*SOME, *without)).cost


def names(found: CostBisected) -> dict[str, list[str]]:
    return {
        "rules": [rule.name for rule in found.rules],
        "gains": [gain.rule.name for gain in found.gains],
        "redundant": [rule.name for rule in found.redundant],
        "alone": [rule.name for rule in found.alone],
    }


def test_the_whole_gain_is_bought_by_a_minimal_set() -> None:
    found = bisect_cost(SILU, gain=1.0, without=SOME)

    redundant = ["add-commutes", "nonnegative-const", "nonnegative-exp", "nonnegative-sum-of-two"]
    assert names(found) == {
        "rules": [
            *("multiply-commutes", "fma-from-add-multiply", "sigmoid-from-exp"),
            *("silu-from-sigmoid", "load-of-store"),
        ],
        "gains": [
            *("load-of-store", "sigmoid-from-exp", "fma-from-add-multiply"),
            *("multiply-commutes", "silu-from-sigmoid"),
        ],
        "redundant": [*redundant, "numbers-of-formulas"],
        "alone": [*redundant, "numbers-of-formulas"],
    }
    assert found.bought == 1
    assert found.cost == found.cost_with_rules == cost(SILU)
    assert found.cost == cost(SILU, *names(found)["redundant"])


def test_without_any_rule_of_the_set_less_is_bought() -> None:
    found = bisect_cost(SILU, gain=0.994, without=SOME)

    others = [*names(found)["gains"], *names(found)["redundant"]]
    without = [name for name in others if name not in names(found)["rules"]]
    wanted = found.cost_before - 0.994 * (found.cost_before - found.cost)
    assert names(found)["rules"] == ["sigmoid-from-exp", "load-of-store"]
    assert cost(SILU, *without) == found.cost_with_rules <= wanted
    for name in names(found)["rules"]:
        assert cost(SILU, *without, name) > wanted


def test_a_share_is_what_is_lost_without_the_rule() -> None:
    found = gains(SILU, without=SOME)

    whole = rx.explain(SILU, without=SOME)
    for gain in found:
        assert gain.cost == cost(SILU, gain.rule.name)
        lost = (gain.cost - whole.cost) / (whole.cost_before - whole.cost)
        assert gain.share == pytest.approx(lost, abs=1e-9)
    assert [gain.share for gain in found] == sorted((g.share for g in found), reverse=True)
    assert {gain.rule.name for gain in found if gain.share == 0} == {
        *("add-commutes", "nonnegative-const", "nonnegative-exp", "nonnegative-sum-of-two"),
        "numbers-of-formulas",
    }


def test_two_rules_of_which_either_is_enough_have_no_share() -> None:
    again = """; float: reassociates
    (rewrite (R.add (R.multiply s t) u) (R.ewise_fma s t u) :name "fma-again")"""
    without = (*SOME, "idioms", "fusion")

    shares = {g.rule.name: g.share for g in gains(SILU, [again], without=without)}
    found = bisect_cost(SILU, [again], gain=1, without=without)

    assert shares["fma-again"] == shares["fma-from-add-multiply"] == 0
    assert names(found)["rules"] == ["fma-from-add-multiply"]
    assert names(found)["alone"] == [*names(found)["redundant"], "fma-from-add-multiply"]


def test_a_rule_of_the_user_has_a_share() -> None:
    mirrored = rx.parse("""
@R.function
def main(x: R.Tensor(("n", 4), "float32")):
    with R.dataflow():
        a = R.cos(R.negative(x))
        R.output(a)
    return a
""")
    even = '(rewrite (R.cos (R.negative z)) (R.cos z) :name "cos-is-even")'

    found = gains(mirrored, [even], without=FAMILIES)

    assert [(gain.rule.name, gain.share) for gain in found] == [("cos-is-even", 1.0)]


def test_a_schedule_may_name_rulesets_that_a_try_leaves_empty() -> None:
    mine = """
    (ruleset mine)
; float: reassociates
    (rewrite (R.add (R.multiply s t) u) (R.ewise_fma s t u) :ruleset mine :name "my-fma")
    """
    schedule = (Phase("mine", ("mine",)), Phase("lower", ("lower",)))

    found = gains(SILU, [mine], schedule=schedule)

    assert [(gain.rule.name, gain.share > 0) for gain in found] == [("my-fma", True)]


def test_what_buys_most_of_an_mlp_is_that_kernels_are_joined() -> None:
    found = bisect_cost(MLP, without=[f for f in FAMILIES if f not in ("canon", "fusion")])

    assert names(found)["rules"] == ["load-of-store"]
    assert found.bought >= 0.9
    assert found.summary.startswith(f"{found.bought:.1%} of the gain, ")


def test_an_encoder_layer_gains_by_attention() -> None:
    asked = ["softmax-written-out", "attention-of-heads", "nonnegative-exp"]

    found = {gain.rule.name: gain.share for gain in gains(encoder(Sizes(1)), only=asked)}

    assert list(found) == asked
    assert found["attention-of-heads"] > 0.1
    assert found["softmax-written-out"] > 0.1
    assert found["nonnegative-exp"] == 0


def test_each_try_is_told_and_none_is_made_twice() -> None:
    heard: list[int] = []

    found = bisect_cost(SILU, without=(*SOME, "idioms"), progress=lambda n, _: heard.append(n))

    assert heard == list(range(1, found.tries + 1))


def test_costs_as_plain_data() -> None:
    found = bisect_cost(SILU, gain=0.5, without=(*SOME, "idioms"))

    told = found.as_dict()
    assert told.pop("seconds") > 0
    assert told == {
        "gain": 0.5,
        "rules": names(found)["rules"],
        "bought": found.bought,
        "cost_before": found.cost_before,
        "cost": found.cost,
        "cost_with_rules": found.cost_with_rules,
        "gains": [
            {
                "rule": gain.rule.name,
                "law": gain.rule.law,
                "place": str(gain.rule.span),
                "cost": gain.cost,
                "share": gain.share,
                "assumed": {"n": [64]},
            }
            for gain in found.gains
        ],
        "redundant": names(found)["redundant"],
        "redundant_alone": names(found)["alone"],
        "tries": found.tries,
        "assumed": {"n": [64]},
    }


def test_what_has_no_gain() -> None:
    plain = rx.parse("@R.function\ndef main(x: R.Tensor((2,), 'float32')):\n    return x\n")
    with pytest.raises(ValueError, match="the model has no operator without effects"):
        gains(plain)
    with pytest.raises(ValueError, match="no rule matches anything in the module"):
        gains(SILU, without=FAMILIES)
    with pytest.raises(RuleError, match=r"unknown operator R\.ex"):
        gains(SILU, ["(rewrite (R.ex z) z)"])
    with pytest.raises(ValueError, match="no family or rule is named 'idiom'; did you mean"):
        gains(SILU, without=["idiom"])


def test_what_other_sets_of_rules_tell_is_not_tried() -> None:
    costs, book = Costs(), frozenset("abcd")
    costs.add(book, "abc", 1.0)
    costs.add(frozenset("ab"), "a", 3.0)

    assert costs.of(frozenset("abc")) == 1.0  # d matches nothing
    assert costs.of(frozenset("a")) == 3.0
    assert costs.of(frozenset("ac")) is None
    assert costs.bounds(frozenset("ac")) == (1.0, 3.0)
    assert costs.bounds(frozenset("b")) == (3.0, inf)
