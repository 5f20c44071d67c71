"""Shorthand of rules: attributes by name, alternatives, facts about uses."""

import pytest

import relax_egraph as rx
from relax_egraph.egraph.engine import RuleBook
from relax_egraph.egraph.rulebook.forms import written
from relax_egraph.errors import RuleError


def form(rule: str) -> str:
    """A rule as it is without shorthand."""
    book = RuleBook.default([rule], families=())
    (read,) = (r for r in book.rules if r.name in book.of_user)
    return written(read.form)


def refusal(rule: str) -> str:
    with pytest.raises(RuleError) as refused:
        rx.rules.load(rule)
    return str(refused.value)


def test_an_attribute_that_is_left_out_has_its_default() -> None:
    rule = "(rewrite (R.nn.conv2d x w :groups g :strides _) (R.nn.conv2d x w :groups g))"

    assert form(rule) == (
        "(rewrite"
        ' (R.nn.conv2d x w _ (vec-of 0 0) (vec-of 1 1) g "NCHW" "OIHW" "" "")'
        ' (R.nn.conv2d x w (vec-of 1 1) (vec-of 0 0) (vec-of 1 1) g "NCHW" "OIHW" "" ""))'
    )


def test_operands_that_are_left_out_are_none() -> None:
    rule = '(rewrite (R.nn.attention q k v :scale s :causal_mask "TopLeft") q)'

    assert form(rule) == '(rewrite (R.nn.attention q k v (R.none) s "TopLeft" -1) q)'


def test_attributes_by_name_match_what_the_program_leaves_out() -> None:
    module = rx.parse("""
@R.function
def main(x: R.Tensor((1, 4, 8, 8), "float32"), w: R.Tensor((4, 4, 1, 1), "float32")):
    with R.dataflow():
        y = R.nn.conv2d(x, w)
        R.output(y)
    return y
""")
    rule = '(rewrite (R.nn.conv2d x w :groups 1) (R.call_pure_packed "c" (vec-of x w)) :demand)'
    other = '(rewrite (R.nn.conv2d x w :groups 2) (R.call_pure_packed "c" (vec-of x w)) :demand)'

    assert '"c"' in rx.optimize(module, [rule]).script()
    assert '"c"' not in rx.optimize(module, [other]).script()


WRONG = {
    "(rewrite (R.abs x) (or (R.exp x) x))": """\
<rules>:1:20: or chooses among what is matched
    (rewrite (R.abs x) (or (R.exp x) x))
                       ^
what a rule makes is one term; write two rules""",
    "(rewrite (R.abs (or (R.exp y) (R.sin x))) x)": """\
<rules>:1:43: x is unbound: it occurs neither on the left side nor in :when
    (rewrite (R.abs (or (R.exp y) (R.sin x))) x)
                                              ^""",
    "(rewrite (R.nn.conv2d x w :stride s) x)": """\
<rules>:1:27: R.nn.conv2d has no attribute stride
    (rewrite (R.nn.conv2d x w :stride s) x)
                              ^
did you mean strides?""",
    "(rewrite (R.nn.conv2d x w :strides) x)": """\
<rules>:1:27: strides of R.nn.conv2d needs a value
    (rewrite (R.nn.conv2d x w :strides) x)
                              ^""",
    "(rewrite (R.sum x :keepdims false) x)": """\
<rules>:1:10: axis of R.sum has no default
    (rewrite (R.sum x :keepdims false) x)
             ^
write :axis and its value, or _ for any that matches""",
    "(rewrite (R.nn.softmax x 1 :axis 1) x)": """\
<rules>:1:28: R.nn.softmax has axis twice
    (rewrite (R.nn.softmax x 1 :axis 1) x)
                               ^""",
}


@pytest.mark.parametrize("rule", WRONG)
def test_shorthand_that_is_wrong_is_refused(rule: str) -> None:
    assert refusal(rule) == WRONG[rule]


def test_alternatives_are_a_rule_each() -> None:
    book = RuleBook.default(
        [
            """
(rewrite (R.nn.relu (or (R.abs x) (R.exp x))) (R.abs x)
  :when ((or (= 1 (rank-of x)) (= 2 (rank-of x)))) :name "relu-of-positive")
"""
        ]
    )
    rules = [r for r in book.rules if r.name in book.of_user]

    assert [r.name for r in rules] == [f"relu-of-positive/{k}" for k in (1, 2, 3, 4)]
    assert written(rules[1].form) == (
        "(rewrite (R.nn.relu (R.abs x)) (R.abs x) :when ((= 2 (rank-of x))))"
    )


@pytest.mark.parametrize(("operator", "matches"), [("add", 1), ("multiply", 1), ("divide", 0)])
def test_one_of_the_alternatives_matches(operator: str, matches: int) -> None:
    module = rx.parse(f"""
@R.function
def main(x: R.Tensor((8,), "float32"), y: R.Tensor((8,), "float32")):
    with R.dataflow():
        z = R.nn.relu(R.{operator}(x, y))
        R.output(z)
    return z
""")
    rule = """
(rewrite (R.nn.relu (or (R.add x y) (R.multiply x y)))
  (R.call_pure_packed "f" (vec-of x y)) :demand)
"""

    assert rx.optimize(module, [rule]).script().count('"f"') == matches


def test_each_alternative_is_checked() -> None:
    rule = "(rewrite (R.abs (or (R.exp x) (R.nn.relu x))) (R.exp x))"

    first, second = rx.rules.check(rule, trials=3, processes=1)

    assert (first.kind, second.kind) == ("exact", "unsound")


USED = """
@R.function
def main(x: R.Tensor((8,), "float32")):
    with R.dataflow():
        a = R.exp(x)
        b = R.tanh(a)
        y = {result}
        R.output(y)
    return y
"""


@pytest.mark.parametrize(
    ("premise", "result", "matches"),
    [
        ("(uses-of a 1)", "R.negative(b)", True),
        ("(uses-of a 1)", "R.add(b, a)", False),
        ("(uses-of a 2)", "R.add(b, a)", True),
        ("(uses-of a n) (< n 2)", "(b, a)", False),
        ("(only-used-by a t) (= t (R.tanh a))", "R.negative(b)", True),
        ("(only-used-by a t) (= t (R.tanh a))", "R.add(b, a)", False),
        ("(only-used-by a t) (only-used-by t u) (= u (R.negative t))", "R.negative(b)", True),
    ],
)
def test_rules_ask_how_the_program_uses_a_value(premise: str, result: str, matches: bool) -> None:
    rule = f"""
(rewrite (R.tanh (R.exp x)) (R.call_pure_packed "f" (vec-of x))
  :when ((= a (R.exp x)) {premise}) :demand)
"""

    best = rx.optimize(rx.parse(USED.format(result=result)), [rule])

    assert ('"f"' in best.script()) == matches


@pytest.mark.parametrize("premise", ["(uses-of y 1)", "(uses-of y n) (< n 3)"])
def test_rules_that_ask_for_uses_are_checked(premise: str) -> None:
    rule = f"(rewrite (R.abs y) y :when ((= y (R.exp x)) {premise}))"
    wrong = f"(rewrite (R.negative y) y :when ((= y (R.exp x)) {premise}))"

    (right,) = rx.rules.check(rule, trials=3, processes=1)
    (other,) = rx.rules.check(wrong, trials=3, processes=1)

    assert right.kind == "exact"
    assert other.kind == "unsound"
