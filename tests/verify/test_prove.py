"""What sympy proves of rules: that shapes agree for all sizes, and laws of dimensions."""

from random import Random

import pytest

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.rule import Direction
from relax_egraph.verify.check import check_rules
from relax_egraph.verify.failures.prove import general, shapes_agree
from relax_egraph.verify.group import Group
from relax_egraph.verify.instances.draw import Instance
from relax_egraph.verify.verdict import Verdict

AGREE = {
    "transposed product": "(rewrite (R.permute_dims (R.matmul x y) (vec-of 1 0))"
    " (R.matmul (R.permute_dims y (vec-of 1 0)) (R.permute_dims x (vec-of 1 0)))"
    " :when ((= 2 (rank-of x)) (= 2 (rank-of y))))",
    "joined products": "(rewrite (R.matmul x (R.concat ts 1))"
    " (R.concat (vec-of (R.matmul x v) (R.matmul x w)) 1) :when ((= 2 (vec-length ts))"
    " (= v (vec-get ts 0)) (= w (vec-get ts 1)) (= 2 (rank-of v)) (= 2 (rank-of x))))",
    "a product of what is not empty": "(rewrite (R.matmul (R.matmul x y) z)"
    " (R.matmul x (R.matmul y z)) :when ((= 2 (rank-of x)) (= 2 (rank-of y)) (= 2 (rank-of z))"
    ' (dim-ge (vec-get (shape-of y) 0) (DimSym "1"))'
    ' (dim-ge (vec-get (shape-of y) 1) (DimSym "1"))))',
}
DISAGREE = {
    "of a symmetric shape only": "(rewrite (R.permute_dims x (vec-of 1 0)) x)",
    "one axis less": "(rewrite (R.sum x axes true) (R.sum x axes false))",
    "another dtype": '(rewrite (R.exp x) (R.astype (R.exp x) "float64"))',
    "another product": "(rewrite (R.matmul x y) (R.matmul y x))",
}


def drawn(rule: str) -> tuple[Direction, list[Instance]]:
    book = RuleBook.default([rule], families=())
    (pattern,) = book.rewrites[0].directions
    group = Group(book, pattern, Random(0), chains={pattern.name: (pattern,)})
    attempts = (group.attempt((pattern,), small=False) for _ in range(30))
    return pattern, [instance for instance in attempts if instance is not None]


def verdict_on(rule: str) -> Verdict:
    (verdict,) = check_rules(RuleBook.default([f"; float: exact\n{rule}"], families=()))
    return verdict


@pytest.mark.parametrize("rule", AGREE.values(), ids=AGREE)
def test_shapes_are_proved_to_agree(rule: str) -> None:
    assert shapes_agree(*drawn(rule))


@pytest.mark.parametrize("rule", DISAGREE.values(), ids=DISAGREE)
def test_shapes_that_disagree_are_not_proved(rule: str) -> None:
    assert not shapes_agree(*drawn(rule))


def test_an_instance_is_general_but_for_what_must_be_equal() -> None:
    _, instances = drawn("(rewrite (R.matmul x y) (R.matmul y x) :when ((= 2 (rank-of x))))")
    flat = next(i for i in instances if i.info("x").ndim == i.info("y").ndim == 2)
    made = general(flat)

    assert made is not None
    x, y = (list(made.symbols.info(name).dims or ()) for name in "xy")
    assert x[1] == y[0]
    assert len({*x, *y}) == 3


def test_a_sound_rule_of_which_shapes_agree_is_proved() -> None:
    verdict = verdict_on("(rewrite (R.add x y) (R.add y x))")

    assert verdict.proved
    assert str(verdict).endswith("shapes proved for all sizes")


def test_a_law_of_dimensions_is_proved() -> None:
    verdict = verdict_on("(rewrite (DimMul (DimAdd a b) c) (DimAdd (DimMul a c) (DimMul b c)))")

    assert verdict.sound
    assert verdict.proved
    assert str(verdict) == "<rules>:2 (<rules>:2:1): exact; proved for all sizes"


def test_a_false_law_of_dimensions_is_refuted_by_numbers() -> None:
    verdict = verdict_on("(rewrite (DimFloorDiv (DimMul a b) c) (DimMul a (DimFloorDiv b c)))")

    assert verdict.kind == "unsound"
    assert verdict.reason == (
        "for a = 2, b = 1, c = 2 (DimFloorDiv (DimMul a b) c) is 1, (DimMul a (DimFloorDiv b c))"
        " is 0"
    )


def test_a_law_of_dimensions_that_sympy_does_not_decide_is_not_said_to_be_proved() -> None:
    verdict = verdict_on('(rewrite (DimMod (DimMul a a) (DimSym "4")) (DimMod a (DimSym "2")))')

    assert (verdict.sound, verdict.proved) == (False, False)
    assert verdict.reason == (
        "a law of dimensions, which sympy does not prove and no small numbers refute"
    )
