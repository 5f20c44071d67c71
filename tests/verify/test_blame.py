"""Which rule is blamed for wrong instances in which several rules took part."""

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.verify.check import check_rules

RULES = """
; the relation means: no element is negative
(relation never-negative (Tensor))

; exp(x) > 0; float: exact
(rule ((= t (R.exp x))) ((never-negative t)) :name "of-exp")

; float: exact
(rule ((= t {wrong})) ((never-negative t)) :name "of-other")

; |x| = x if no element is negative; float: exact
(rewrite (R.abs x) x :when ((never-negative x)) :name "drop-abs")

; x + y = y + x of anything; float: exact
(rewrite (R.add x y) (R.add y x) :when ((never-negative x)) :name "swap")
"""


def verdicts(wrong: str, only: list[str] | None = None) -> dict[str, bool]:
    """Whether each rule is sound; of these, ``of-exp`` and ``drop-abs`` are."""
    book = RuleBook.default([RULES.format(wrong=wrong)], families=())
    return {v.rule: v.sound for v in check_rules(book, only)}


def test_a_wrong_deduction_excuses_the_rule_that_reads_it() -> None:
    assert verdicts("(R.negative x)") == {
        "of-exp": True,
        "of-other": False,
        "drop-abs": True,
        "swap": True,
    }


def test_a_deduction_that_is_right_below_another_rule_excuses_none() -> None:
    assert verdicts("(R.negative x)", ["drop-abs"]) == {"drop-abs": False}


def test_a_right_deduction_needs_no_excuse() -> None:
    assert verdicts("(R.sigmoid x)", ["drop-abs", "of-other"]) == {
        "of-other": True,
        "drop-abs": True,
    }
