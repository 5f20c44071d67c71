"""Random changes of rules that are proven: of those that numpy refutes, none is proven.

Proofs are over the reals: where float16 overflows on one side only, nothing is refuted.
"""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np
import pytest

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.prove.prove import prove
from relax_egraph.verify.values.classes import Difference
from relax_egraph.verify.verdict import Counterexample
from tests.support.rule_mutants import Mutant, is_rule, mutants_of

pytest.importorskip("z3", reason="proofs need z3-solver")

LEDGER = Path(__file__).parents[2] / "docs" / "proofs.json"
BOOK = RuleBook.default(fast_math=True, bounded=True)
RULES = {rule.name: rule for rule in BOOK.rules}
PROVEN = [row["name"] for row in json.loads(LEDGER.read_text("utf-8")) if row["status"] == "proven"]

EACH = 10
"""The variations of one seed."""


def variations(seed: int) -> Iterator[Mutant]:
    """Random changes, each of a random rule: a premise less, a looser one, another result.

    `shape-of-parts` stays: parts of `R.dist.shard` are equal by its contract, which proofs assume
    of the left side, and which the checker of shapes does not know.
    """
    random = Random(seed)
    while True:
        some = [*mutants_of(RULES[random.choice(PROVEN)])]
        some = [m for m in some if not m.change.startswith("without (= u (shape-of-parts")]
        if some and is_rule(one := random.choice(some)):
            yield one


def refuted_by(mutant: Mutant) -> Counterexample | None:
    found = mutant.verdict(()).counterexample
    return None if found is None or overflows(found.difference) else found


def overflows(difference: Difference) -> bool:
    left, at, right = difference.left, difference.at, difference.right
    if left is None or at is None or right is None or left.dtype != np.float16:
        return False
    return not (np.isfinite(left[at]) and np.isfinite(right[at]))


def proven_and_refuted(seed: int) -> list[str]:
    some = islice(variations(seed), EACH)
    proven = (m for m in some if prove(m.changed, BOOK).status == "proven")
    return [str(m) for m in proven if refuted_by(m) is not None]


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(30))
def test_no_proven_variation_is_refuted(seed: int) -> None:
    assert proven_and_refuted(seed) == []
