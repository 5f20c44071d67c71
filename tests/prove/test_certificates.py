"""Proofs are kept with the questions that solvers answered, and read while nothing changed."""

from pathlib import Path

import pytest

from relax_egraph import rules
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.prove import kept
from relax_egraph.prove.certificate import Certificate, certified
from relax_egraph.prove.questions import answer, ask, recording, z3
from relax_egraph.prove.rechecking import Recheck, recheck

pytest.importorskip("z3", reason="proofs need z3-solver")

BOOK = RuleBook.default(fast_math=True, bounded=True)
RULES = {rule.name: rule for rule in BOOK.rules}

TEXT = """
; (tripled y x): y = 3 x
(relation tripled (Tensor Tensor))

; 3 x
; float: exact
(rule ((= y (R.multiply x k)) (= 3.0 (const-scalar k)) (is-float x)) ((tripled y x))
  :name "tripling")

; 3 x / x, a sum
; float: reassociates
(rule ((tripled y x) (= t (R.subtract y x))) ((union t (R.add x x))) :name "less-one")
"""


@pytest.fixture
def version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An empty cache, and a name for sources that may have changed just now."""
    monkeypatch.setenv("RELAX_EGRAPH_CACHE", str(tmp_path))
    monkeypatch.setattr(kept, "prover_version", lambda: "this")


def book_of(text: str) -> RuleBook:
    return RuleBook.default([rules.Rules((("own.egg", text),))], fast_math=True, bounded=True)


def proven(text: str, name: str = "less-one") -> Certificate:
    book = book_of(text)
    return kept.certificate(next(r for r in book.rules if r.name == name), book)


def refuse(*_: object) -> None:
    raise AssertionError("it is proven again")


@pytest.mark.usefixtures("version")
def test_a_proof_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    made = proven(TEXT)
    monkeypatch.setattr(kept, "certified", refuse)

    assert made.verdict.status == "proven"
    assert made.instances
    assert proven(TEXT) == made


@pytest.mark.usefixtures("version")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("3.0 (const-scalar k)", "4.0 (const-scalar k)"),  # of a rule that deduces a premise
        ("(R.add x x)", "(R.add x y)"),
        ("float: reassociates", "float: exact"),
    ],
)
def test_a_rule_is_proven_again_if_what_it_rests_on_changes(old: str, new: str) -> None:
    assert proven(TEXT).verdict.status == "proven"

    assert proven(TEXT.replace(old, new)).verdict.status != "proven"


MEANT = """
(function times-of (Tensor Tensor) f64 :merge old)
(meaning (= c (times-of y x))
  ((= y (R.multiply x (R.broadcast_to (R.const c d) s))) (= d (dtype-of x)) (= s (shape-of x))
   (is-float x)))
(rule ((= y (R.multiply x k)) (= c (const-scalar k)) (is-float x))
      ((set (times-of y x) c))
  :name "times-by-product")

; c x
; float: exact
(rule ((= c (times-of y x)) (= d (dtype-of x)) (= s (shape-of x)))
      ((union y (R.multiply x (R.broadcast_to (R.const c d) s))))
  :name "product-again")
"""

WITHIN = """
(rule ((= y (R.add a b))) ((let u (less-of y a b))) :name "less-by-add")
"""

TAKEN = """
(relation less-of (Tensor Tensor Tensor))
(relation taken-from (Tensor Tensor Tensor))
(meaning (less-of y a b) ((= y (R.subtract a b))))
(meaning (taken-from y a b) ((= y (R.subtract a b))))
(rule ((= y (R.subtract a b))) ((less-of y a b)) :name "less-by-subtract")
(rule ((less-of y a b)) ((taken-from y a b)) :name "taken-by-less")

; a - b
; float: exact
(rule ((taken-from y a b)) ((union y (R.subtract a b))) :name "difference-again")
"""


@pytest.mark.usefixtures("version")
@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (MEANT, ":merge old", ":merge (+ old new)"),
        (TAKEN, "(meaning (taken-from y a b)", "(meaning (taken-from y b a)"),
        (TAKEN, "(meaning (less-of y a b)", "(meaning (less-of y b a)"),
        (TAKEN, "((less-of y a b)) :name", "((less-of y b a)) :name"),
        (TAKEN, "; a - b", f"{WITHIN}; a - b"),
    ],
)
def test_so_it_is_if_a_table_or_its_meaning_changes(text: str, old: str, new: str) -> None:
    name = "product-again" if text is MEANT else "difference-again"
    assert proven(text, name).verdict.status == "proven"
    assert text.count(old) == 1

    assert proven(text.replace(old, new), name).verdict.status != "proven"


def test_a_proof_rests_on_facts_of_the_book_that_the_prover_does_not_know_by_itself() -> None:
    text = """
    ; x as a row
    ; float: exact
    (rule ((elements-of t x) (is-float x) (<= 0.0 (low-of x))) ((union t x)) :name "elements-again")
    """
    book = book_of(text)
    (rule,) = (r for r in book.rules if r.name == "elements-again")

    some, names = kept.rests_on(rule, book)

    assert {"elements-of", "is-float", "low-of"} <= {*names}
    assert {"elements-of-reshape", "elements-of-flatten"} <= {r.name for r in some}
    assert not [r.name for r in some if r.name.startswith(("low-", "value-"))]


@pytest.mark.usefixtures("version")
def test_a_damaged_entry_is_proven_again(tmp_path: Path) -> None:
    made = proven(TEXT)
    for entry in tmp_path.glob("*.o"):
        entry.write_bytes(b"damaged")

    again = proven(TEXT)

    assert (again.instances, again.questions) == (made.instances, made.questions)


def test_a_second_solver_confirms_each_question() -> None:
    pytest.importorskip("cvc5", reason="the second solver")
    made = certified(RULES["relu-twice"], BOOK)
    count = len(made.questions)

    found = recheck(made)

    assert count > 0
    assert found == Recheck(count, {"z3": count, "cvc5": count}, {"z3": 0, "cvc5": 0})
    assert found.holds


def test_solvers_read_any_name() -> None:
    with recording() as record:
        n, k = z3().Ints("a|b√½ 0_2e_k")
        assert ask((n > 0, n + k < 12, k > 11), 1000) == "impossible"

    (question,) = record.questions

    assert answer(question, 1000) == "impossible"


def test_a_question_whose_conditions_may_hold_is_denied() -> None:
    question = "(declare-fun n () Int)\n(assert (>= n 0))\n(check-sat)\n"
    made = certified(RULES["relu-twice"], BOOK)

    found = recheck(Certificate(made.verdict, questions=(question,)))

    assert (found.impossible["z3"], found.possible["z3"], found.holds) == (0, 1, False)


def test_a_proof_by_a_meaning_has_the_instances_of_its_steps() -> None:
    meaning = """(meaning (tripled y x)
      ((= y (R.multiply x (R.broadcast_to (R.const 3.0 d) s))) (is-float x)
       (= d (dtype-of x)) (= s (shape-of x))))
    """
    book = book_of(TEXT + meaning)

    made = certified(next(r for r in book.rules if r.name == "less-one"), book)

    assert (made.verdict.status, made.verdict.meanings) == ("proven", ("tripled",))
    assert len(made.instances) > made.verdict.forms
