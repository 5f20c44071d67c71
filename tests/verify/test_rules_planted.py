"""Faults that rule sets have had are found, with the smallest operands and the premise that lacks.

Each file of ``tests/verify/planted`` is one rule that claims more than is true.  The report on it
is compared with ``tests/verify/planted/expected``; ``pytest --bless`` rewrites that file.
"""

from pathlib import Path

import pytest

from relax_egraph import rules
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.verify.check import INSTANCES, check_rules
from relax_egraph.verify.verdict import Verdict

FOLDER = Path(__file__).parent / "planted"
FAULTS = {path.stem: path.read_text("utf-8") for path in sorted(FOLDER.glob("*.egg"))}

UNCONDITIONAL = (
    *("division-moved-into-product", "product-of-powers", "product-of-roots"),
    *("product-widened-late", "quotient-of-matmul"),
)
"""Faults for which no premise of the vocabulary is the remedy."""

FEW = 6
"""Instances of a rule that is sound."""

SEEDS = (1, 2)
"""Those of the long runs; what the seed 0 finds is compared word for word in every run."""


def verdict_on(text: str, seed: int = 0, trials: int = INSTANCES) -> Verdict:
    book = RuleBook.default([rules.Rules((("planted.egg", text),))], families=(), fast_math=True)
    (verdict,) = check_rules(book, trials=trials, seed=seed)
    return verdict


def with_premises(text: str, premises: str) -> str:
    """The text of a rule that has these premises, too."""
    if "(rule (" in text:
        return text.replace("(rule (", f"(rule ({premises} ", 1)
    if ":when (" in text:
        return text.replace(":when (", f":when ({premises} ", 1)
    return text.replace(":name", f":when ({premises}) :name", 1)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str, pytestconfig: pytest.Config) -> None:
    verdict = verdict_on(FAULTS[fault])

    found = "\n".join((verdict.kind, *([verdict.guard] * bool(verdict.guard))))
    found += f"\n{verdict.counterexample}\n"
    expected = FOLDER / "expected" / f"{fault}.txt"
    if pytestconfig.getoption("--bless"):
        expected.write_text(found, "utf-8")
    assert found == expected.read_text("utf-8")


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_whatever_the_seed(fault: str, seed: int) -> None:
    verdict = verdict_on(FAULTS[fault], seed)

    assert not verdict.sound
    assert verdict.kind == ("unsound" if fault in UNCONDITIONAL else "conditional")


@pytest.mark.parametrize("fault", [f for f in FAULTS if f not in UNCONDITIONAL])
def test_the_rule_is_sound_with_the_premise_that_is_suggested(fault: str) -> None:
    expected = (FOLDER / "expected" / f"{fault}.txt").read_text("utf-8")
    guard = expected.splitlines()[1]
    premises = guard.partition(": ")[2]

    verdict = verdict_on(with_premises(FAULTS[fault], premises), trials=FEW)

    assert verdict.sound, str(verdict)


def test_every_fault_has_what_is_expected_of_it() -> None:
    assert {path.stem for path in (FOLDER / "expected").glob("*.txt")} == set(FAULTS)
