"""Random changes of rules that are proven: of those that numpy refutes, none is proven."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.prove.prove import prove
from tests.support.rule_mutants import Mutant, is_rule, mutants_of

pytest.importorskip("z3", reason="proofs need z3-solver")

LEDGER = Path(__file__).parents[2] / "docs" / "proofs.json"
BOOK = RuleBook.default(fast_math=True, bounded=True)
RULES = {rule.name: rule for rule in BOOK.rules}
PROVEN = [row["name"] for row in json.loads(LEDGER.read_text("utf-8")) if row["status"] == "proven"]

EACH = 10
"""The variations of one seed."""


def variations(seed: int) -> Iterator[Mutant]:
    """Random changes, each of a random rule: a premise less, a looser one, another result."""
    random = Random(seed)
    while True:
        some = [*mutants_of(RULES[random.choice(PROVEN)])]
        if some and is_rule(one := random.choice(some)):
            yield one


def proven_and_refuted(seed: int) -> list[str]:
    some = islice(variations(seed), EACH)
    proven = (m for m in some if prove(replace(m.rule, form=m.form), BOOK).status == "proven")
    return [str(m) for m in proven if m.verdict(()).counterexample is not None]


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(30))
def test_no_proven_variation_is_refuted(seed: int) -> None:
    assert proven_and_refuted(seed) == []
