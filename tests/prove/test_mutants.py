"""What is proven of a rule with one thing changed, numpy does not refute."""

from dataclasses import replace

import pytest

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.prove.prove import prove
from tests.support.rule_mutants import Mutant, is_rule, mutants_of

pytest.importorskip("z3", reason="proofs need z3-solver")

BOOK = RuleBook.default(fast_math=True, bounded=True)
RULES = {r.name: r for r in BOOK.rewrites if any(d.unites for d in r.directions)}
SAMPLE = (
    "clip-of-relu",
    "divide-floats",
    "relu-within-bounds",
    "max-of-shifted",
)
ROUNDS = ("variance-as-mean", "std-as-variance", "rms-norm-as-product")
"""Rules whose mutants overflow in halves, which a proof over the real numbers does not cover."""

SHAPES = ("all-gather-of-shards", "matmul-by-sums", "matmul-of-weight-by-sums")
"""Rules with a guard for shapes of symbols: a proof assumes that what is cut has equal parts, as it
has wherever the left side has a value, and ``n // 2 * 2`` and ``n`` are two shapes all the same."""


def proven(name: str) -> list[Mutant]:
    mutants = (m for m in mutants_of(RULES[name]) if m.kind != "result changed")
    return [m for m in mutants if prove(replace(m.rule, form=m.form), BOOK).status == "proven"]


def refuted(name: str) -> list[str]:
    known = [(m, m.verdict(())) for m in proven(name) if is_rule(m)]
    return [str(m) for m, verdict in known if verdict.counterexample is not None]


@pytest.mark.parametrize("name", SAMPLE)
def test_no_proven_mutant_is_refuted(name: str) -> None:
    assert refuted(name) == []


@pytest.mark.fuzz
@pytest.mark.parametrize("name", sorted(RULES.keys() - {*SAMPLE, *ROUNDS, *SHAPES}))
def test_no_proven_mutant_of_the_book_is_refuted(name: str) -> None:
    assert refuted(name) == []
