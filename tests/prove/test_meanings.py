"""Stated meanings of relations: shown for every rule that adds a row, or nothing rests on them."""

from itertools import product
from pathlib import Path

import pytest

from relax_egraph import rules
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.vocabulary import operators
from relax_egraph.errors import IllTyped, RuleError
from relax_egraph.ir.dtypes import DTYPES, is_float
from relax_egraph.ir.struct_info import ShapeExpr, ShapeStructInfo, TensorStructInfo
from relax_egraph.prove import induction
from relax_egraph.prove.arranging import OF_ONE_DTYPE
from relax_egraph.prove.prove import prove
from relax_egraph.prove.unfolding import KNOWN
from relax_egraph.prove.verdict import Verdict

pytest.importorskip("z3", reason="proofs need z3-solver")

FALSE = (Path(__file__).parent / "meanings.egg").read_text("utf-8")

FAILS = {
    "reads-false-step": "step-negative",
    "reads-false-base": "base-abs",
    "reads-first": "second-by-sum",
    "reads-finite": "finite-or-not",
    "reads-multiple": "multiple-by-quotient",
    "reads-difference-exactly": "difference-of-multiples",
    "reads-total": "two values of total-of are merged",
    "reads-halves": "halves-united",
    "reads-axes": "repeats-along-the-first",
    "reads-part": "part-anywhere",
    "reads-either": "either-square",
    "reads-thing": "thing-of is no relation",
    "reads-without-units": "without-units-negative",
    "reads-number": "ones-and-zeros: it is not shown: Undecided",
}
"""By rule what of the meaning that it assumes is not shown."""


def book_of(text: str) -> RuleBook:
    return RuleBook.default([rules.Rules((("mine.egg", text),))], families=(), fast_math=True)


def proofs(text: str, *names: str) -> list[Verdict]:
    book = book_of(text)
    return [prove(rule, book) for rule in book.rules if rule.name in names]


@pytest.mark.parametrize("name", FAILS)
def test_nothing_rests_on_a_meaning_that_a_rule_does_not_keep(name: str) -> None:
    (verdict,) = proofs(FALSE, name)

    assert verdict.status == "not proven"
    assert FAILS[name] in verdict.reason


CHANGES = (
    ("(false-step (R.negative y) x)", "(false-step y x)", "reads-false-step"),
    (
        "((= y (R.abs x)) (is-float x)) ((false-base",
        "((= y (R.negative x)) (is-float x)) ((false-base",
        "reads-false-base",
    ),
    ("((= y (R.add x x))) ((second-of", "((= y (R.negative x))) ((second-of", "reads-first"),
    (":merge (+ old new)", ":merge old", "reads-total"),
    ("(union p q)", "(union z z)", "reads-halves"),
    (
        "(= e (vec-get end 0)))",
        "(= e (vec-get end 0)) (dim-ge (vec-get (shape-of x) 0) e))",
        "reads-part",
    ),
    (
        "; float: exact\n(rule ((times-difference",
        "; float: reassociates\n(rule ((times-difference",
        "reads-difference-exactly",
    ),
    ("(R.square x)", "(R.abs x)", "reads-either"),
)
"""Changes that make the meaning true, so that what was refused is proven."""


@pytest.mark.parametrize(("wrong", "right", "name"), CHANGES)
def test_with_that_rule_made_right_it_is_proven(wrong: str, right: str, name: str) -> None:
    assert FALSE.count(wrong) == 1

    (verdict,) = proofs(FALSE.replace(wrong, right), name)

    assert (verdict.status, verdict.reason) == ("proven", "")
    assert verdict.meanings


def test_a_prover_that_shows_no_step_proves_what_is_false(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: object) -> list[induction.Shown]:
        return [induction.Shown("false-base")]

    monkeypatch.setattr("relax_egraph.prove.prove.shown", nothing)
    text = FALSE.replace(
        '((union y (R.negative x))) :name "reads-false-base"',
        '((union y (R.negative x))) :name "x"',
    )

    assert [v.status for v in proofs(text, "x")] == ["proven"]


def test_rows_that_a_user_adds_to_a_relation_of_the_book_are_steps_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(induction, "STEPS", ((1, 60_000),))
    text = """
    (rule ((= t (R.negative x)) (= d (dtype-of t)) (is-float t))
          ((set (scale-by t x) (R.const 3.0 d)))
      :name "negative-by-three")
    """
    book = RuleBook.default([rules.Rules((("mine.egg", text),))])
    (rule,) = (rule for rule in book.rules if rule.name == "matmul-scaled")

    verdict = prove(rule, book)

    assert verdict.status == "not proven"
    assert "negative-by-three" in verdict.reason


def test_what_users_add_to_a_fact_that_proofs_believe_is_not_believed() -> None:
    text = """
(rule ((= y (R.negative x)) (is-float x)) ((is-nonnegative y)) :name "negative-is-positive")
; float: exact
(rewrite (R.abs x) x :when ((is-nonnegative x) (is-float x)) :name "abs-of-what-is-said")"""
    book = RuleBook.default([rules.Rules((("mine.egg", text),))], fast_math=True, bounded=True)
    (rule,) = [r for r in book.rules if r.name == "abs-of-what-is-said"]

    verdict = prove(rule, book)

    reason = "negative-is-positive adds to is-nonnegative, which proofs believe"
    assert (verdict.status, verdict.reason) == ("not proven", reason)


def test_users_add_to_few_facts_that_proofs_believe() -> None:
    """But to numbers of tensors: a rule that adds one is proven itself."""
    scope = RuleBook.default(fast_math=True, bounded=True).reading.scope

    assert KNOWN - scope.closed == {"const-scalar", "is-nonnegative", "is-number"}


@pytest.mark.parametrize("head", OF_ONE_DTYPE)
def test_a_float_is_made_of_floats(head: str) -> None:
    op, count = operators()[head[2:]].op, OF_ONE_DTYPE[head]
    attrs = {"axes": (1, 0)} if head == "R.permute_dims" else {}
    shape = [ShapeStructInfo((2, 2), 2)] if op.operands[-1].kind == "shape" else []
    made: list[tuple[str, ...]] = []
    for dtypes in product(DTYPES, repeat=count):
        infos = [TensorStructInfo(ShapeExpr((2, 2)), d, 2) for d in dtypes]
        try:
            info = op.rule(*infos, *shape, **attrs)
        except IllTyped:
            continue
        if isinstance(info, TensorStructInfo) and is_float(str(info.dtype)):
            made.append(dtypes)

    assert made
    assert [d for dtypes in made for d in dtypes if not is_float(d)] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(meaning (twice-of y x))", "a meaning is written"),
        ("(meaning (twice-of y x) ())", "a meaning is written"),
        ("(meaning (thrice-of y x) ((= y x)))", "thrice-of is not declared"),
        ("(meaning (twice-of y y) ((= y y)))", "y stands twice"),
        ("(meaning (twice-of y (R.exp x)) ((= y x)))", "is no variable"),
        ("(meaning (twice-of y) ((= y y)))", "twice-of takes 2 arguments"),
        ("(meaning (= s (shape-of x)) ((= s s)))", "what shape-of means the engine knows"),
        ("(meaning (twice-of y x) ((= y (R.ad x x))))", "unknown operator R.ad"),
        (
            "(meaning (twice-of y x) ((= y x))) (meaning (twice-of y x) ((= y x)))",
            "twice-of has a meaning already",
        ),
    ],
)
def test_a_wrong_meaning_is_an_error(text: str, message: str) -> None:
    with pytest.raises(RuleError, match=message):
        book_of(f"(relation twice-of (Tensor Tensor))\n{text}")
