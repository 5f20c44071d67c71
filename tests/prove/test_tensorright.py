"""Rules of another optimizer, XLA: what is proven of each, and of each with a premise less.

`tensorright/verdicts.txt` has a line for each rule; ``pytest --bless -m fuzz`` writes it.
"""

from pathlib import Path

import pytest

from relax_egraph import rules
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.prove.user_rules import prove_rules
from tests.support.proven_mutants import refuted
from tests.support.rule_mutants import is_rule, weaker

pytest.importorskip("z3", reason="proofs need z3-solver")

FOLDER = Path(__file__).parent / "tensorright"
VERDICTS = FOLDER / "verdicts.txt"
FILES = tuple((p.name, p.read_text("utf-8")) for p in sorted(FOLDER.glob("*.egg")))
BOOK = RuleBook.default([rules.Rules(FILES)], fast_math=True, bounded=True)
RULES = {rule.name: rule for rule in BOOK.rules if rule.name in BOOK.of_user}

FAST = (
    *("add-01", "sub-02", "sub-02-of-finite", "mul-03", "mul-08", "divmod-03", "divmod-05"),
    *("max-01", "clamp-02", "compare-06", "compare-06-of-integers", "logical-09", "select-04"),
    *("broadcast-03", "relabel-01", "reverse-03", "concat-02", "slice-01", "dyslice-02"),
    *("reduce-01-of-some", "reduce-07", "dot-01", "dot-03", "dot-05/1", "conv-00"),
)
"""Rules of which each takes less than a second."""

WEAKENED = ("sub-02-of-finite", "reverse-04", "relabel-02")
"""Rules of which all that have a premise less take a few seconds."""


def verdict_on(rule: Rule) -> str:
    (verdict,) = prove_rules(BOOK, [rule])
    return f"{rule.name}: {verdict.status}"


@pytest.mark.parametrize("name", FAST)
def test_a_verdict_is_as_before(name: str) -> None:
    assert verdict_on(RULES[name]) in VERDICTS.read_text("utf-8").splitlines()


@pytest.mark.fuzz
def test_all_verdicts_are_as_before(pytestconfig: pytest.Config) -> None:
    text = "".join(f"{verdict_on(rule)}\n" for rule in RULES.values())

    if pytestconfig.getoption("--bless"):
        VERDICTS.write_text(text, "utf-8")
    assert text == VERDICTS.read_text("utf-8")


@pytest.mark.parametrize("name", WEAKENED)
def test_no_proven_rule_with_a_premise_less_is_refuted(name: str) -> None:
    assert refuted(filter(is_rule, weaker(RULES[name])), BOOK) == []


@pytest.mark.fuzz
@pytest.mark.parametrize("name", sorted(RULES.keys() - {*WEAKENED}))
def test_no_proven_rule_of_all_with_a_premise_less_is_refuted(name: str) -> None:
    assert refuted(filter(is_rule, weaker(RULES[name])), BOOK) == []
