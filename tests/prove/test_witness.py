"""A proof that fails finds operands for which the sides of a false rule differ."""

import pytest

from relax_egraph import rules
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.prove.prove import prove

pytest.importorskip("z3", reason="proofs need z3-solver")

NEVER = """
; the extents of the operands depend on each other
; float: exact
(rule ((= t (R.concat (vec-of x y) 0)) (= s (shape-of x)) (= u (shape-of y)) (= 1 (vec-length s))
       (= (vec-get s 0) (DimMul (DimSym "2") (vec-get u 0))))
      ((union t (R.concat (vec-of y x) 0)))
  :name "swapped")
"""

BY_EXTENT = """
; a sum over one element
; float: exact
(rewrite (R.sum x (vec-of 0) false) (R.max x (vec-of 0) false)
  :when ((= 1 (rank-of x)) (is-float x)) :name "sum-as-maximum")
"""

BY_NUMBER = """
; |x| c = x c where x > -c
; float: exact
(rewrite (R.abs x) x :when ((= least (low-of x)) (< -1.0 least)) :name "abs-of-nearly-positive")
"""

BY_NAN = """
; NaN is not less
; float: exact
(rewrite (R.logical_not (R.less x y)) (R.greater_equal x y) :when ((is-float x)) :name "not-less")
"""

STEERED = """
; what only some programs have may be true of these
; float: exact
(rewrite (R.negative x) x :when ((is-ordinary x)) :name "of-ordinary")
"""


def verdict(text: str) -> tuple[str, list[str]]:
    book = RuleBook.default([rules.Rules((("own.egg", text),))], fast_math=True, bounded=True)
    (rule,) = (r for r in book.rules if r.name in book.of_user)
    found = prove(rule, book)
    return found.status, found.reason.splitlines()


def test_operands_that_depend_on_each_other_are_found() -> None:
    status, (x, y, _) = verdict(NEVER)

    assert status == "refuted"
    assert (x, y) == ('x = R.Tensor((6,), "float64")', 'y = R.Tensor((3,), "float64")')


def test_the_extents_are_such_that_the_sides_differ() -> None:
    status, (x, sides) = verdict(BY_EXTENT)

    assert status == "refuted"
    assert x != 'x = R.Tensor((1,), "float64")'
    assert sides.startswith("the left side is ")


def test_numbers_and_elements_are_those_that_premises_admit() -> None:
    status, (x, least, sides) = verdict(BY_NUMBER)

    assert status == "refuted"
    assert (x, least) == ('x = R.Tensor((), "float64")', "number low-of x = -0.25")
    assert sides == "the left side is 0.25, the right side -0.25"


def test_elements_that_are_no_numbers_are_tried() -> None:
    status, (*_, sides) = verdict(BY_NAN)

    assert (status, sides) == ("refuted", "the left side is True, the right side False")


def test_an_instance_that_lacks_a_premise_refutes_nothing() -> None:
    assert verdict(STEERED)[0] == "not proven"
