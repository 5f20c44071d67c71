"""Chains of rules, along which a rule that deduces is tried."""

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.forms import Source
from relax_egraph.verify.instances.chains import can_match, chain_to

RULES = """
(relation known (Tensor))
(relation wide (Tensor))

(rule ((= x (R.exp y)) (= "int8" (dtype-of y))) ((known y)) :name "known-of-int8")

(rule ((known y) (= "uint8" (dtype-of y))) ((wide y)) :name "wide-of-uint8")

(rule ((known y) (= s (shape-of y))) ((wide y)) :name "wide-of-any")

(rule ((wide y) (= t (R.subtract y y)) (= s (shape-of y)))
      ((union t (R.broadcast_to (R.const 0.0 "int8") s)))
  :name "nothing-of-a-wide-one")
"""


def test_a_chain_passes_over_readers_that_contradict_the_rule() -> None:
    book = RuleBook((), (Source("my.egg", RULES),))
    known, of_uint8, of_any, nothing = (p for r in book.rewrites for p in r.directions)

    assert chain_to(known, book) == (nothing, of_any, known)
    assert not can_match((of_uint8, known), book)
