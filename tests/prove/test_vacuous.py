"""Premises that contradict each other, whatever ranks operands have, and others that do not."""

import pytest

from relax_egraph.egraph.rulebook.forms import Source
from relax_egraph.egraph.rulebook.reader import read
from relax_egraph.prove.vacuous import contradict

pytest.importorskip("z3", reason="proofs need z3-solver")

CONTRADICTIONS = (
    *("(< 0 (rank-of k)) (= 0 (rank-of k))", "(= 0 (rank-of k)) (= m (rank-of k)) (< 0 m)"),
    *("(= (vec-of 1) (vec-range (rank-of g)))", "(= (vec-of 0 1) (vec-range 3))"),
    *("(= flag true) (= false flag)", '(= "int8" (dtype-of x)) (= d (dtype-of x)) (= d "bool")'),
    *("(= k 1) (= k 2)", "(= c 1.0) (= c 2.0)", "(= v (vec-of 0 1)) (= v (vec-of a))"),
    *("(= v (vec-of 0 1)) (= v (vec-of a a))", "(= 2 (vec-get (vec-of 1 3) 1))"),
    *(
        "(< (rank-of x) 0)",
        "(= k (+ (rank-of x) 1)) (= k 0)",
        "(= x y) (< (rank-of x) (rank-of y))",
    ),
    *("(> 0 (vec-length s))", "(= 0 m) (built= m (rank-of (R.exp x))) (>= (rank-of (R.exp x)) 1)"),
)
"""Premises of which no values are there."""

OTHERS = (
    *("(= 5 (rank-of k))", "(<= 4 (vec-length ts)) (= q (R.concat ts 0))", "(= c 0.0) (= c -0.0)"),
    *(
        "(= k 1) (= m 01) (= k m)",
        "(= (vec-of 0 1) (vec-range (rank-of g)))",
        "(< 0.0 c) (< c 1.0)",
    ),
    *("(= c (* 2.0 e)) (= c 3.0)", '(= text (+ "a" b)) (= text "ab")', "(= x (R.negative x))"),
    *('(= d (DimSym "4")) (= d (DimSym "n"))', "(= v (vec-of a b)) (= v (vec-of b a))"),
    *("(= (vec-of) (vec-range k))", "(= q (R.sum w (vec-of 0 1 2 3 4) false))", "(is-float x)"),
    *('(is-float x) (= d (dtype-of x)) (= d "int8")', "(= (R.exp x) (R.abs x))", "(= c inf)"),
    *("(= a NaN) (= a b)", "(< m n) (< n m)", "(= a (vec-get v 0)) (= b (vec-get v k)) (= a b)"),
)
"""Premises that some values have, or of which it takes more to see that none do."""


@pytest.mark.parametrize("text", CONTRADICTIONS)
def test_premises_contradict_each_other(text: str) -> None:
    assert contradict(tuple(read(Source("premises", text))))


@pytest.mark.parametrize("text", OTHERS)
def test_premises_do_not(text: str) -> None:
    assert not contradict(tuple(read(Source("premises", text))))
