"""Which premises rules need, and the diff that leaves out the others."""

import pytest

from relax_egraph import rules
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.prove.premises import premises_needed
from relax_egraph.prove.suggestion import suggestion

pytest.importorskip("z3", reason="proofs need z3-solver")

TEXT = """\
; -(-x) = x
; float: exact
(rewrite (R.negative (R.negative x)) x :when ((is-float x)) :name "minus-twice")

; |x| = x, of x > 0
; float: exact
(rewrite (R.abs x) x :when ((= least (low-of x)) (< 0.0 least)) :name "abs-of-positive")

; relu(relu(x)) = relu(x), of an x with an axis
; float: exact
(rule ((= t (R.nn.relu (R.nn.relu x))) (= n (rank-of x)) (< 0 n))
      ((union t (R.nn.relu x)))
  :name "relu-again")

; max(x, 0) = x, of x >= 0
; float: exact
(rewrite (R.nn.relu x) x :when ((= least (low-of x)) (<= 0.0 least)) :name "relu-of-positive")
"""

DIFF = """\
--- own.egg
+++ own.egg
@@ -1,14 +1,14 @@
 ; -(-x) = x
 ; float: exact
-(rewrite (R.negative (R.negative x)) x :when ((is-float x)) :name "minus-twice")
+(rewrite (R.negative (R.negative x)) x :name "minus-twice")
 
 ; |x| = x, of x > 0
 ; float: exact
-(rewrite (R.abs x) x :when ((= least (low-of x)) (< 0.0 least)) :name "abs-of-positive")
+(rewrite (R.abs x) x :when ((= least (low-of x)) (<= 0.0 least)) :name "abs-of-positive")
 
 ; relu(relu(x)) = relu(x), of an x with an axis
 ; float: exact
-(rule ((= t (R.nn.relu (R.nn.relu x))) (= n (rank-of x)) (< 0 n))
+(rule ((= t (R.nn.relu (R.nn.relu x))))
       ((union t (R.nn.relu x)))
   :name "relu-again")
 
"""


def test_premises_that_are_not_needed_are_left_out() -> None:
    own = rules.Rules((("own.egg", TEXT),))
    book = RuleBook.default([own], fast_math=True, bounded=True)
    needs = {rule: premises_needed(rule, book) for rule in book.rules if rule.name in book.of_user}

    assert {rule.name: [*map(str, premises)] for rule, premises in needs.items()} == {
        "minus-twice": ["(is-float x) is not needed"],
        "abs-of-positive": ["(< 0.0 least) may be (<= 0.0 least)"],
        "relu-again": ["(= n (rank-of x)) is not needed", "(< 0 n) is not needed"],
        "relu-of-positive": ["(<= 0.0 least) is needed"],
    }
    assert suggestion(needs, book) == DIFF
