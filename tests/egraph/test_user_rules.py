"""A user's own rule file: what it can do, and what every kind of mistake says."""

from pathlib import Path

import pytest

import relax_egraph as rx
from relax_egraph.errors import RuleError, SaturationError

MIRRORED = """
@R.function
def main(x: R.Tensor(("n", 4), "float32")):
    with R.dataflow():
        lv = R.negative(x)
        gv = R.cos(lv)
        R.output(gv)
    return gv
"""

EVEN = '(rewrite (R.cos (R.negative x)) (R.cos x) :name "cos-is-even")\n'


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    return tmp_path / "my.egg"


def test_one_line_removes_a_negation(rules: Path) -> None:
    rules.write_text(EVEN)

    report = rx.explain(rx.parse(MIRRORED), rules=[rules])

    assert "R.negative" not in report.module.script()
    assert report.rules["cos-is-even"] == 1


def test_without_the_rule_the_negation_stays() -> None:
    assert "R.negative" in rx.optimize(rx.parse(MIRRORED)).script()


WRONG = {
    "unknown operator": (
        "; twice is once\n(rewrite (R.nn.rely x) x)\n",
        """\
:2:10: unknown operator R.nn.rely
    (rewrite (R.nn.rely x) x)
             ^
did you mean R.nn.relu?""",
    ),
    "wrong arity": (
        "(rewrite (R.add x) x)\n",
        """\
:1:10: R.add takes 2 arguments, got 1
    (rewrite (R.add x) x)
             ^
it is written (R.add x:Tensor y:Tensor)""",
    ),
    "missing parenthesis": (
        "(rewrite (R.nn.relu x) x\n",
        """\
:1:1: this '(' is never closed
    (rewrite (R.nn.relu x) x
    ^""",
    ),
    "duplicate name": (
        EVEN + "\n" + EVEN,
        f"""\
:3:1: a second rule is named cos-is-even
    {EVEN.strip()}
    ^
the first is at {{path}}:1:1""",
    ),
    "ill-typed shape": (
        '(rewrite (R.reshape x 4) x :name "r")\n',
        """\
:1:23: shape of R.reshape needs a Shape, 4 is an i64
    (rewrite (R.reshape x 4) x :name "r")
                          ^
a shape is written (vec-of (DimSym "n") (DimSym "4"))""",
    ),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_a_mistake_is_shown_where_it_is_and_the_module_is_left_alone(
    rules: Path, mistake: str
) -> None:
    text, message = WRONG[mistake]
    rules.write_text(text)
    module = rx.parse(MIRRORED)
    before = module.script()

    with pytest.raises(RuleError) as error:
        rx.optimize(module, rules=[rules])

    assert str(error.value) == str(rules) + message.replace("{path}", str(rules))
    assert module.script() == before


def test_a_rule_that_unites_different_shapes_is_named() -> None:
    unsound = '(rewrite (R.negative x) (R.sum x (vec-of 0) false) :name "negative-is-sum")\n'

    with pytest.raises(SaturationError) as error:
        rx.optimize(rx.parse(MIRRORED), rules=[unsound])

    assert str(error.value) == (
        "rule negative-is-sum (<rules>:1:1) is unsound: it equates values of shapes (n, 4) and (4,)"
    )


COMPUTED = {
    "by a later premise": """
(relation mean-square (Tensor Tensor))
(rule ((= v (R.mean (R.multiply x x) axes true)) (= axes (vec-of last)) (= last (- (rank-of x) 1)))
      ((mean-square v x)))
(rewrite (R.sqrt (R.abs v)) (R.sqrt v) :when ((mean-square v x)) :name "root")
""",
    "in the left side": """
(rewrite (R.sqrt (R.abs (R.mean y (vec-of last) true))) (R.sqrt (R.mean y (vec-of last) true))
  :when ((= y (R.multiply x x)) (= last (- (rank-of y) 1))) :name "root")
""",
    "over several premises": """
(rewrite (R.sqrt (R.abs (R.mean (R.multiply x x) axes true))) (R.sqrt (R.mean y axes true))
  :when ((< -1 last) (= axes (vec-of last)) (= last (- r 1)) (= r (+ k 0)) (= k (rank-of x))
         (= y (R.multiply x x)))
  :name "root")
""",
    "behind a guard": """
(rewrite (R.sqrt (R.abs (R.mean (R.multiply x x) axes true))) (R.sqrt (R.mean y axes true))
  :when ((dim-ge e (DimSym "1")) (= e (vec-get s 1)) (= s (vec-push u (DimSym "4")))
         (= u (vec-of (vec-get t 0))) (= t (shape-of x)) (= y (R.multiply x x)))
  :name "root")
""",
}
"""Rules of one law, which compute an axis before what it is computed of."""

ROOT = """
@R.function
def main(x: R.Tensor(("n", 4), "float32")):
    with R.dataflow():
        square = R.multiply(x, x)
        mean = R.mean(square, axis=[1], keepdims=True)
        gv = R.sqrt(R.abs(mean))
        R.output(gv)
    return gv
"""


@pytest.mark.parametrize("text", COMPUTED.values(), ids=COMPUTED)
def test_premises_may_compute_in_any_order(text: str) -> None:
    without = ["canon", "bounds"]  # which drop the magnitude, too

    report = rx.explain(rx.parse(ROOT), rules=[text], without=without)

    assert report.rules["root"] == 1
