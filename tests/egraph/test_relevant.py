"""What is left of a rule book for a block."""

from collections.abc import Sequence

from relax_egraph.egraph.rulebook.relevant import Relevance, can_matter
from tests.support.entries import entries_of, rule_of

DECLARED = tuple(f"(constructor R.{name} (Tensor) Tensor)" for name in ("exp", "log", "sin", "cos"))
CHAIN = (
    "(rewrite (R.exp x) (R.log x))",
    '(rewrite (R.log x) (R.sin x) :when ((= y (R.cos x))) :ruleset a :name "needs-cos")',
)


def absent(texts: Sequence[str], present: Sequence[str]) -> frozenset[str]:
    """What `texts` declare that cannot be where only the operators `present` are."""
    return Relevance(entries_of(*texts)).absent(present)


def test_what_is_made_of_what_is_made_may_be_there() -> None:
    assert absent((*DECLARED, *CHAIN), ["R.exp", "R.cos"]) == frozenset()


def test_a_rule_needs_all_that_it_matches() -> None:
    missing = absent((*DECLARED, *CHAIN), ["R.exp"])

    assert missing == {"R.sin", "R.cos"}
    assert [can_matter(entry, missing) for entry in entries_of(*DECLARED, *CHAIN)] == [
        *(True, True, False, False),
        *(True, False),
    ]


def test_a_relation_is_there_if_a_rule_that_can_fire_makes_it() -> None:
    relation = "(relation even (Tensor))"
    makes = "(rule ((= t (R.cos x))) ((even t)))"
    uses = "(rule ((even t)) ((union t (R.sin t))))"
    texts = (*DECLARED, relation, makes, uses)

    assert absent(texts, ["R.exp"]) == {"even", "R.log", "R.sin", "R.cos"}
    assert absent(texts, ["R.cos"]) == {"R.exp", "R.log"}


def test_a_rule_of_two_directions_needs_one_of_its_sides() -> None:
    both = "(birewrite (R.exp x) (R.log x))"

    assert absent((*DECLARED, both), ["R.exp"]) == {"R.sin", "R.cos"}
    assert absent((*DECLARED, both), ["R.log"]) == {"R.sin", "R.cos"}
    assert not can_matter(rule_of(both), absent((*DECLARED, both), ["R.sin"]))


def test_facts_are_always_there() -> None:
    fact = "(rule ((= 1 (rank-of x))) ((union x (R.sin x))))"

    assert absent((*DECLARED, "(function rank-of (Tensor) i64 :merge old)", fact), []) == {
        *("R.exp", "R.log", "R.cos")
    }


def test_a_variable_may_bear_the_name_of_what_is_absent() -> None:
    relation = "(relation even (Tensor))"
    rule = "(rewrite (R.exp even) (R.log even))"

    missing = absent((*DECLARED, relation, rule), ["R.exp"])

    assert missing == {"even", "R.sin", "R.cos"}
    assert can_matter(rule_of(rule), missing)


def test_what_is_passed_on_by_its_name_must_be_there() -> None:
    relation = "(relation even (Tensor))"
    passes = '(rule ((= y (R.exp x)) (= f (unstable-fn "even"))) ((union x (R.sin y))))'

    missing = absent((*DECLARED, relation, passes), ["R.exp"])

    assert missing == {"even", "R.log", "R.sin", "R.cos"}
    assert not can_matter(rule_of(passes), missing)
