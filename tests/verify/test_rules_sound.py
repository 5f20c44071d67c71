"""Every rule of the book is sound: fuzzed on random instances, compared through the reference."""

from pathlib import Path

import pytest

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.verify.cases import cases_of
from relax_egraph.verify.check import INSTANCES, check_rules

BOOK = RuleBook.default(fast_math=True, bounded=True)
CASES = [
    case
    for path in sorted((Path(__file__).parents[1] / "rules").glob("*.egg"))
    for case in cases_of(path.read_text("utf-8"), path.name)
]


FAMILIES = tuple(dict.fromkeys(rule.ruleset for rule in BOOK.checked))

FEW = 6
"""Instances that each rule has to match in every run; long runs: `INSTANCES`."""


@pytest.mark.parametrize("count", [FEW, pytest.param(INSTANCES, marks=pytest.mark.fuzz)])
@pytest.mark.parametrize("family", FAMILIES)
def test_rules_are_sound(family: str, count: int) -> None:
    names = [rule.name for rule in BOOK.checked if rule.ruleset == family]

    verdicts = check_rules(BOOK, names, CASES, trials=count)

    assert [str(v) for v in verdicts if not v.sound] == []
    assert {v.rule: v.fired for v in verdicts if v.fired < count} == {}
