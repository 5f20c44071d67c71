"""No false rule is proven: the refused equations, planted faults, and rules with one change."""

from pathlib import Path
from typing import Any

import pytest

from relax_egraph import rules
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.prove import comparison, equality
from relax_egraph.prove.prove import prove
from relax_egraph.prove.user_rules import prove_rules, prove_user_rules
from relax_egraph.prove.verdict import Verdict
from tests.support.rule_mutants import mutants_of

pytest.importorskip("z3", reason="proofs need z3-solver")

FOLDER = Path(__file__).parent
REFUSED = {path.stem: path.read_text("utf-8") for path in sorted(FOLDER.glob("refused*.egg"))}
PLANTED = {
    path.stem: path.read_text("utf-8")
    for path in sorted((FOLDER.parent / "verify" / "planted").glob("*.egg"))
}
BOOK = RuleBook.default(fast_math=True, bounded=True)
RULES = {rule.name: rule for rule in BOOK.rules}

CHANGES = {
    "abs-of-negative": "without (is-float x)",
    "clip-from-maximum": "without (<= a b)",
    "less-equal-within-bounds": "without (!= d",
    "matmul-grouped-right": "without (dim-ge",
    "matmul-of-constants": "without (dim-ge",
    "matmul-of-transposed": "without (= p",
    "max-of-multiple": "without (< 0.0 k)",
    "permute-as-reshape": "without (= true (only-units-move",
    "add-integers": "without (<= (abs a)",
}
"""By rule how false changes of it begin."""

SLOW = ("permute-as-reshape",)
"""Rules of which proofs of changes take seconds."""


def text_of(rules_text: str) -> rules.Rules:
    return rules.Rules((("wrong.egg", rules_text),))


def always(*_: Any) -> bool:
    return True


def proofs(text: str) -> list[Verdict]:
    book = RuleBook.default([text_of(text)], fast_math=True, bounded=True)
    mine = (rule for rule in book.rules if rule.name in book.of_user)
    return [prove(rule, book) for rule in mine if any(d.unites for d in rule.directions)]


def changed(rule: Rule, change: str) -> list[Rule]:
    return [m.changed for m in mutants_of(rule) if m.change.startswith(change)]


@pytest.mark.parametrize("name", REFUSED)
def test_no_refused_equation_is_proven(name: str) -> None:
    assert [str(v) for v in proofs(REFUSED[name]) if v.status == "proven"] == []


@pytest.mark.parametrize("fault", PLANTED)
def test_no_planted_fault_is_proven(fault: str) -> None:
    book = RuleBook.default([text_of(PLANTED[fault])], families=(), fast_math=True)
    planted = [rule for rule in book.rules if rule.name in book.of_user]

    assert [prove(rule, book).status == "proven" for rule in planted] == [False]


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.fuzz] if n in SLOW else []) for n in CHANGES],
)
def test_a_rule_that_is_made_false_is_not_proven(name: str) -> None:
    assert prove(RULES[name], BOOK).status == "proven"

    verdicts = [prove(rule, BOOK) for rule in changed(RULES[name], CHANGES[name])]

    assert verdicts
    assert [str(v) for v in verdicts if v.status == "proven"] == []


def test_a_prover_that_maps_a_sum_to_any_other_proves_a_false_rule(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without the check that a bijection keeps the range of a sum."""
    text = """
    ; the first element of a matrix with itself is no sum along its rows
    ; float: reassociates
    (rewrite (R.sum (R.strided_slice x (vec-of (DimSym "1")) (vec-of (DimSym "3")) (vec-of 0)
                                     (vec-of 1) true) (vec-of 0) false)
             (R.sum (R.strided_slice x (vec-of (DimSym "0")) (vec-of (DimSym "2")) (vec-of 0)
                                     (vec-of 1) true) (vec-of 0) false)
      :when ((= 1 (rank-of x)) (is-float x)) :name "sum-of-others")
    """
    assert [v.status for v in proofs(text)] == ["not proven"]

    monkeypatch.setattr(equality.Equality, "follow", always)

    assert [v.status for v in proofs(text)] == ["proven"]


def test_a_prover_that_drops_conditions_of_extents_proves_a_false_rule(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without the check that both sides have one shape."""
    text = """
    ; one element everywhere is there in any shape
    ; float: exact
    (rule ((= t (R.broadcast_to x s)) (= 0 (rank-of x)) (= z (R.exp y)) (= u (shape-of z))
           (= (rank-of t) (rank-of z)))
          ((union t (R.broadcast_to x u)))
      :name "broadcast-to-another-shape")
    """
    assert [v.status for v in proofs(text)] == ["not proven"]

    monkeypatch.setattr(comparison.Comparing, "of_one_type", always)

    assert [v.status for v in proofs(text)] == ["proven"]


def test_a_refuted_rule_has_a_counterexample() -> None:
    (verdict,) = prove_user_rules(
        text_of('; float: exact\n(rewrite (R.subtract x y) (R.subtract y x) :name "swap")'),
        progress=None,
    )

    assert (verdict.status, verdict.reason.splitlines()[:2]) == (
        "refuted",
        ['x = R.Tensor((), "float64")', 'y = R.Tensor((), "float64")'],
    )


def test_a_rule_that_instances_determine_is_left_not_proven() -> None:
    (verdict,) = prove_rules(BOOK, [RULES["dim-add"]])

    assert verdict.status == "not proven"
