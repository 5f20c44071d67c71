"""Guards: premises about dimensions that sympy answers."""

from collections.abc import Sequence

import pytest
from egglog.bindings import EGraph

from relax_egraph.egraph.commands import run_text
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.forms import original, written
from relax_egraph.egraph.rulebook.guards import expand
from relax_egraph.ir.assumptions import assuming, parse
from tests.support.entries import rule_of

RULE = """
(ruleset my)
(relation asked (Tensor))
(rule ((= t (R.reshape x s)) (= a (vec-get s 0)) (= b (vec-get s 1)) ({guard}))
      ((asked t))
  :ruleset my :name "ask")
"""
DEDUCE = "(run-schedule (saturate (seq (run dim) (run my))))"


def _holds(guard: str, first: str, second: str, before: Sequence[str] = (DEDUCE,)) -> bool:
    """Whether `guard`, about a and b, holds for the dimensions `first` and `second`."""
    book = RuleBook.default([RULE.format(guard=guard)], families=())
    tensor = f'(R.reshape (Leaf 0) (vec-of (DimSym "{first}") (DimSym "{second}")))'
    egraph = EGraph()
    for text in (*book.program_of_families.texts, tensor, *before):
        run_text(egraph, text)
    return bool(egraph.freeze().functions["asked"].rows)


@pytest.mark.parametrize(
    ("guard", "first", "second", "holds"),
    [
        ("dim-equal a b", "n * 4", "2 * n + n * 2", True),
        ("dim-equal a b", "n", "m", False),
        ("dim-ge a b", "n + 1", "n", True),
        ("dim-ge a b", "n", "n + 1", False),
        ("dim-divides a b", "4", "n * 8", True),
        ("dim-divides a b", "4", "n", False),
        ('dim-divides (DimSym "8") b', "n", "n * 8", True),
        ('dim-divides (DimSym "8") b', "n", "n * 4", False),
        ('dim-equal (DimMul a (DimSym "4")) (DimMul (DimSym "2") b)', "n", "n * 2", True),
        ('dim-equal (DimAdd a (DimMul (DimSym "-1") b)) (DimSym "1")', "n", "n - 1", True),
        ('dim-ge (DimFloorDiv a (DimSym "2")) (DimMod b (DimSym "2"))', "n * 2 + 2", "m", True),
        ('dim-equal (DimFloorDiv a (DimSym "0")) b', "n", "n", False),
        ("dim-equal (vec-get s 0) b", "n", "n", True),
    ],
)
def test_a_guard_holds_if_it_is_proven(guard: str, first: str, second: str, holds: bool) -> None:
    assert _holds(guard, first, second) is holds


def test_a_guard_of_a_row_is_asked_again_when_the_texts_are_known() -> None:
    early = "(run-schedule (repeat 3 (run my)))"
    in_row = "= n (numel-of x)) (dim-equal n n"

    def holds(*before: str) -> bool:
        return _holds(in_row, "n", "n", ['(set (numel-of (Leaf 0)) (DimSym "n"))', *before])

    assert not holds(early)
    assert holds(early, DEDUCE)


@pytest.mark.parametrize(
    ("conditions", "guard", "first", "second"),
    [
        (["n >= 1"], 'dim-ge a (DimSym "1")', "n", "m"),
        (["s % 8 == 0"], "dim-divides a b", "8", "s"),
        (["s % 8 == 0"], "dim-equal a b", "(s // 8) * 8", "s"),
        (["m == 2*n"], 'dim-equal a (DimMul (DimSym "2") b)', "m", "n"),
    ],
)
def test_a_guard_is_asked_under_the_assumptions_of_the_run(
    conditions: list[str], guard: str, first: str, second: str
) -> None:
    assert not _holds(guard, first, second)
    with assuming(parse(conditions)):
        assert _holds(guard, first, second)


def test_a_guard_becomes_premises_that_ask() -> None:
    rule = '(rewrite (R.reshape x s) x :when ((dim-ge (vec-get s 0) (DimSym "8"))))'

    assert written(expand(rule_of(rule).form)) == (
        "(rewrite (R.reshape x s) x :when ("
        '(= guard-1 (unstable-app (unstable-fn "dim-text") (vec-get s 0))) '
        "(= true (py-to-bool (py-call (dim-judge) "
        '(py-from-string (+ "dim-ge" ";" guard-1 ";" "8")))))))'
    )


def test_places_around_a_guard_are_those_of_the_text() -> None:
    rule = '(rule ((= s t) (dim-ge (vec-get s 0)  d) (= d e) (dim-ge d d))\n ((union t "end")))'

    expanded = expand(rule_of(rule).form)

    text = written(expanded)
    for place in ("(= s t)", "(vec-get s 0)", "(= d e)", '"end"'):
        assert original(expanded, text.index(place)) == rule.index(place)
    assert original(expanded, text.index("guard-1")) == rule.index("(vec-get")
    assert original(expanded, text.index("(py-call")) == rule.index("(dim-ge")


def test_a_rule_without_guards_stays_as_it_is() -> None:
    form = rule_of("(rewrite (R.exp x) x)").form

    assert expand(form) is form
