"""A counterexample is as small as may be, and the same in every run."""

from random import Random

import pytest

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.rule import Direction
from relax_egraph.verify.check import check_rules
from relax_egraph.verify.failures.shrink import minimal
from relax_egraph.verify.group import Group
from relax_egraph.verify.instances.draw import Instance
from relax_egraph.verify.verdict import Counterexample

EXAMPLES = {
    "(rewrite (R.nn.softmax x axis) (R.divide (R.exp x) (R.exp x)))": """\
left   (R.nn.softmax x axis)
right  (R.divide (R.exp x) (R.exp x))
x: R.Tensor((2,), "float32") = [0.0, 0.0]
axis = 0
left is [0.5, 0.5]
right is [1.0, 1.0]
at [0] left is 0.5, right is 1.0""",
    "(rewrite (R.subtract x y) (R.subtract y x))": """\
left   (R.subtract x y)
right  (R.subtract y x)
x: R.Tensor((), "float32") = 0.0
y: R.Tensor((), "float32") = 1.0
left is -1.0, right is 1.0""",
    "(rewrite (R.sum x axes keepdims) (R.mean x axes keepdims))": """\
left   (R.sum x axes keepdims)
right  (R.mean x axes keepdims)
x: R.Tensor((2,), "float32") = [1.0, 1.0]
axes = (0,)
keepdims = False
left is 2.0, right is 1.0""",
    "(rewrite (R.mean x (vec-of 0) false) (R.max x (vec-of 0) false))": """\
left   (R.mean x (vec-of 0) false)
right  (R.max x (vec-of 0) false)
x: R.Tensor((2,), "float32") = [0.0, 1.0]
left is 0.5, right is 1.0""",
    '(rewrite (R.astype (R.astype x "int8") "int32") x :when ((= "int32" (dtype-of x))))': """\
left   (R.astype (R.astype x "int8") "int32")
right  x
x: R.Tensor((), "int32") = 256
left is 0, right is 256""",
}


def drawn(book: RuleBook, pattern: Direction) -> list[Instance]:
    group = Group(book, pattern, Random(0), chains={pattern.name: (pattern,)})
    attempts = (group.attempt((pattern,), small=False) for _ in range(30))
    return [instance for instance in attempts if instance is not None]


def of(rule: str) -> tuple[RuleBook, Direction]:
    book = RuleBook.default([rule], families=())
    return book, book.rewrites[0].directions[0]


def smallest(rule: str) -> str:
    book, pattern = of(rule)
    some = drawn(book, pattern)
    found = minimal(pattern, some, book.declarations, lambda _: None, "reassociates")
    assert found is not None
    return str(Counterexample(pattern, *found))


@pytest.mark.parametrize("rule", EXAMPLES)
def test_a_counterexample_is_minimal(rule: str) -> None:
    assert smallest(rule) == EXAMPLES[rule]
    assert smallest(rule) == EXAMPLES[rule]


def test_a_rule_of_facts_is_shrunk_by_asking_egglog() -> None:
    rule = """; float: exact
        (rule ((= y (R.multiply x zero)) (= 0.0 (const-scalar zero)) (is-float y))
              ((set (const-scalar y) 1.0)))"""
    (verdict,) = check_rules(RuleBook.default([rule], families=()))

    assert verdict.kind == "unsound"
    assert (
        str(verdict.counterexample)
        == """\
left   (= y (R.multiply x zero)) (= 0.0 (const-scalar zero)) (is-float y)
right  (set (const-scalar y) 1.0)
x: R.Tensor((), "float32") = 0.0
zero: R.Tensor((), "float32"), each element 0.0
left is 0.0, right is 1.0"""
    )


def test_nothing_is_made_of_what_does_not_differ() -> None:
    book, pattern = of("(rewrite (R.add x y) (R.add y x))")

    assert (
        minimal(pattern, drawn(book, pattern), book.declarations, lambda _: None, "reassociates")
        is None
    )
