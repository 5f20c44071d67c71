"""Every rule of the book is sound: fuzzed on random instances, compared through the reference.

Each family is tried in a process of its own, so that it is tried the same after any other test.
"""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from relax_egraph import rules
from relax_egraph.egraph.rulebook import RuleBook
from relax_egraph.verify.cases import cases_of
from relax_egraph.verify.check import INSTANCES, check_rules

BOOK = RuleBook.default(fast_math=True)
CASES = [
    case
    for path in sorted((Path(__file__).parent / "rules").glob("*.egg"))
    for case in cases_of(path.read_text("utf-8"), path.name)
]


def faults_of(family: str) -> tuple[list[str], dict[str, int]]:
    """What is not sound, and the rules of which there are too few instances."""
    names = [rule.name for rule in BOOK.rewrites if rule.ruleset == family]
    verdicts = check_rules(BOOK, names, CASES)
    unsound = [str(v) for v in verdicts if not v.sound]
    return unsound, {v.rule: v.fired for v in verdicts if v.fired < INSTANCES}


@pytest.mark.parametrize("family", rules.FAMILIES)
def test_rules_are_sound(family: str) -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
        unsound, few = alone.submit(faults_of, family).result()

    assert unsound == []
    assert few == {}
