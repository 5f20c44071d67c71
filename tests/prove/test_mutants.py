"""What is proven of a rule with one thing changed, numpy does not refute.

A premise is left out or loosened, or a variable that a rule has at two places is two.
"""

import pytest

from relax_egraph.egraph.rulebook.book import RuleBook
from tests.support.proven_mutants import refuted
from tests.support.rule_mutants import is_rule, parted, weaker

pytest.importorskip("z3", reason="proofs need z3-solver")

BOOK = RuleBook.default(fast_math=True, bounded=True)
RULES = {r.name: r for r in BOOK.rewrites if any(d.unites for d in r.directions)}
SAMPLE = (
    "clip-of-relu",
    "divide-floats",
    "relu-within-bounds",
    "max-of-shifted",
)
PARTED = ("add-negative", "permute-and-back", "conv2d-by-permuted")
FEW_AXES = ("matmul-of-broadcast",)
"""Rules with a change that is false of more axes than those for which it is proven."""
ROUNDS = ("variance-as-mean", "std-as-variance", "rms-norm-as-product")
"""Rules whose mutants overflow in halves, which a proof over the real numbers does not cover."""

SHAPES = ("all-gather-of-shards", "matmul-by-sums", "matmul-of-weight-by-sums")
"""Rules with a guard for shapes of symbols: a proof assumes that what is cut has equal parts, as it
has wherever the left side has a value, and ``n // 2 * 2`` and ``n`` are two shapes all the same."""


@pytest.mark.parametrize("name", SAMPLE)
def test_no_proven_mutant_is_refuted(name: str) -> None:
    assert refuted(weaker(RULES[name]), BOOK) == []


@pytest.mark.fuzz
@pytest.mark.parametrize("name", sorted(RULES.keys() - {*SAMPLE, *ROUNDS, *SHAPES}))
def test_no_proven_mutant_of_the_book_is_refuted(name: str) -> None:
    assert refuted(weaker(RULES[name]), BOOK) == []


@pytest.mark.parametrize("name", PARTED)
def test_no_proven_rule_with_two_variables_for_one_is_refuted(name: str) -> None:
    assert refuted(filter(is_rule, parted(RULES[name])), BOOK) == []


@pytest.mark.fuzz
@pytest.mark.parametrize("name", sorted(RULES.keys() - {*PARTED, *FEW_AXES, *SHAPES}))
def test_no_proven_rule_of_the_book_with_two_variables_for_one_is_refuted(name: str) -> None:
    assert refuted(filter(is_rule, parted(RULES[name])), BOOK) == []
