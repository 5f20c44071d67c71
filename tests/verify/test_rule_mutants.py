"""A rule that is made wrong on purpose is found: each of the book's with one thing changed.

``tests/verify/surviving_mutants.txt`` lists the mutants that are not found, each with the reason:
it is as right as its rule, or it is missed.  All others of the seed are found, which is the score
of the check.
"""

from pathlib import Path

import pytest

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.verify.cases import cases_of
from tests.support.rule_mutants import Mutant, mutants_of, one_of

FOLDER = Path(__file__).parent
BOOK = RuleBook.default(fast_math=True, bounded=True)
CASES = [
    case
    for path in sorted((FOLDER.parent / "rules").glob("*.egg"))
    for case in cases_of(path.read_text("utf-8"), path.name)
]
SURVIVORS = [
    line.partition(" | ")[0]
    for line in (FOLDER / "surviving_mutants.txt").read_text("utf-8").splitlines()
]
EQUATE = [rule for rule in BOOK.rewrites if any(p.unites for p in rule.directions)]
SLICE = 60

WRONG = {
    "add-negative": "(R.subtract y x) for (R.subtract x y)",
    "divide-floats": "(/ b a) for (/ a b)",
    "matmul-columns-scaled": "k and w exchanged",
    "permute-as-reshape": "without (= true (only-units-move",
    "split-as-slice": "2 for 1",
    "zeros-as-broadcast": "1.0 for 0.0",
}
"""By rule how a change begins: of values, of shapes, of what an operator does not take."""


def found(mutant: Mutant) -> bool:
    return not mutant.verdict(CASES).sound


@pytest.mark.parametrize("rule", WRONG)
def test_a_mutant_is_found(rule: str) -> None:
    (known,) = (r for r in BOOK.rewrites if r.name == rule)
    mutant = next(m for m in mutants_of(known) if m.change.startswith(WRONG[rule]))

    assert found(mutant)


@pytest.mark.fuzz
@pytest.mark.parametrize("start", range(0, len(EQUATE), SLICE))
def test_no_other_mutants_survive(start: int) -> None:
    mutants = [m for rule in EQUATE[start : start + SLICE] if (m := one_of(rule, seed=0))]

    survivors = [str(m) for m in mutants if not found(m)]

    assert [m for m in survivors if m not in SURVIVORS] == []
