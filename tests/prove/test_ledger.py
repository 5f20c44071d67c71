"""``docs/proofs.json`` is true of the book: rules that changed since are proven now."""

import json

import pytest

pytest.importorskip("z3", reason="proofs need z3-solver")

from docs import proofs
from relax_egraph.prove.kept import certificate, stated
from relax_egraph.prove.prove import prove
from relax_egraph.prove.user_rules import equating

ROWS = json.loads(proofs.LEDGER.read_text("utf-8"))
RULES = {rule.name: rule for rule in equating(proofs.BOOK)}
STATED = {name: stated(rule, proofs.BOOK) for name, rule in RULES.items()}
CHANGED = [n for n in RULES if STATED[n] not in {r["stated"] for r in ROWS if r["name"] == n}]


def test_the_ledger_is_of_rules_that_exist() -> None:
    assert {row["name"] for row in ROWS} <= RULES.keys(), "make prove writes it"


def test_the_page_says_what_the_ledger_says() -> None:
    assert proofs.PAGE.read_text("utf-8") == proofs.page(ROWS), "make prove writes it"


@pytest.mark.parametrize("name", CHANGED)
def test_a_rule_that_changed_is_proven(name: str) -> None:
    """One that cannot be has to be noted, with the step that is missing: ``make prove``."""
    verdict = certificate(RULES[name], proofs.BOOK).verdict

    assert verdict.status == "proven", str(verdict)


def test_a_reason_is_the_same_in_every_run() -> None:
    """Variables of sums have numbers of the text, not of the process."""
    again = [prove(RULES["weight-in-bfloat16"], proofs.BOOK).reason for _ in range(2)]

    (kept,) = (row["reason"] for row in ROWS if row["name"] == "weight-in-bfloat16")
    assert again == [kept, kept]
