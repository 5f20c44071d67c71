"""The premise that a rule lacks is found, as the vocabulary says it; or that there is none."""

import pytest

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.verify.check import check_rules

MISSING = {
    "(rewrite (R.matmul x y) (R.matmul y x) :when ((= 2 (rank-of x)) (= 2 (rank-of y))"
    " (= (shape-of x) (shape-of y))))": "the extent of axis 0 of x is 1:"
    ' (dim-equal (vec-get (shape-of x) 0) (DimSym "1"))',
    '(rewrite (R.astype x d) x :when ((= "int32" (dtype-of x))))': 'd = int32: (= "int32" d)',
    "(rewrite (R.max x axes keep) (R.negative (R.min (R.negative x) axes true))"
    " :when ((is-float x)))": "keep = True: (= true keep)",
    "(rewrite (R.exp x) (R.log x))": "",
}


@pytest.mark.parametrize("rule", MISSING)
def test_the_missing_premise_is_suggested(rule: str) -> None:
    (verdict,) = check_rules(RuleBook.default([f"; float: exact\n{rule}"], families=()))

    assert verdict.guard == MISSING[rule]
    assert verdict.kind == ("conditional" if MISSING[rule] else "unsound")
