"""Rules of the book are proven: whole families, and one rule for each kind of step."""

import pytest

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.prove.prove import prove
from relax_egraph.prove.user_rules import equating

pytest.importorskip("z3", reason="proofs need z3-solver")

BOOK = RuleBook.default(fast_math=True, bounded=True)
RULES = {rule.name: rule for rule in equating(BOOK)}

STEPS = (
    *("matmul-of-transposed", "matmul-grouped-left", "sum-of-multiple", "max-of-multiple"),
    *("reshape-of-scalar-broadcast", "unary-of-permuted", "reduction-of-permuted"),
    *("permute-twice", "log-softmax-from-softmax", "exp-of-sum"),
)
"""Rules with sums, bijections, digits of reshapes, powers of e."""


@pytest.mark.parametrize("name", STEPS)
def test_a_rule_is_proven(name: str) -> None:
    assert prove(RULES[name], BOOK).status == "proven"


@pytest.mark.parametrize(
    "family",
    [
        "images",
        *(pytest.param(f, marks=pytest.mark.fuzz) for f in ("bounds", "canon", "fma", "logic")),
    ],
)
def test_a_family_is_proven(family: str) -> None:
    verdicts = [prove(rule, BOOK) for rule in RULES.values() if rule.ruleset == family]

    assert [str(v) for v in verdicts if v.status != "proven"] == []
