"""Delta debugging: what is found is minimal, after few tries, none of them twice."""

from math import log2
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from relax_egraph.reasons.minimize import Outcome, minimal

OUTCOMES: tuple[Outcome, ...] = ("fails", "passes", "unresolved")

PARTS = st.integers(1, 60).flatmap(
    lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1), max_size=12))
)
"""A number of items, and those that are needed for a failure."""


def test_one_item_that_fails_by_itself() -> None:
    tried: list[tuple[int, ...]] = []

    def outcome(part: tuple[int, ...]) -> Outcome:
        tried.append(part)
        return "fails" if 5 in part else "passes"

    assert minimal(range(8), outcome) == (5,)
    assert tried == [(), (4, 5, 6, 7), (6, 7), (4, 5), (5,)]


def test_items_that_fail_only_together() -> None:
    def outcome(part: tuple[str, ...]) -> Outcome:
        return "fails" if {"b", "e"} <= set(part) else "passes"

    assert minimal("abcdef", outcome) == ("b", "e")


def test_what_fails_with_nothing_in_it_is_nothing() -> None:
    assert minimal("abc", lambda _: "fails") == ()
    assert minimal((), lambda _: "fails") == ()


def test_a_try_that_fails_otherwise_is_no_failure() -> None:
    def outcome(part: tuple[str, ...]) -> Outcome:
        if "c" in part and "d" not in part:
            return "unresolved"
        return "fails" if "c" in part else "passes"

    assert minimal("abcdef", outcome) == ("c", "d")


@given(PARTS)
def test_the_items_that_are_needed_are_found_in_few_tries(drawn: tuple[int, set[int]]) -> None:
    n, needed = drawn
    tried: list[tuple[int, ...]] = []

    def outcome(part: tuple[int, ...]) -> Outcome:
        tried.append(part)
        return "fails" if needed.issubset(part) else "passes"

    assert minimal(range(n), outcome) == tuple(sorted(needed))
    k = len(needed)
    assert len(tried) <= (2 * k * (log2(n / k) + 2) if k else 1)
    assert len(set(tried)) == len(tried)


@given(st.integers(1, 9), st.integers(0, 2**32))
def test_whatever_fails_is_minimal(n: int, seed: int) -> None:
    """Of predicates that are not monotone, too: more items may cure, or break otherwise."""
    random = Random(seed)
    known: dict[tuple[int, ...], Outcome] = {}
    tried: list[tuple[int, ...]] = []

    def outcome(part: tuple[int, ...]) -> Outcome:
        if part not in known:
            known[part] = random.choice(OUTCOMES)
        tried.append(part)
        return known[part]

    found = minimal(range(n), outcome)

    assert found == tuple(range(n)) or known[found] == "fails"
    assert all(known[found[:k] + found[k + 1 :]] != "fails" for k in range(len(found)))
    assert len(tried) <= n * (n + 5) / 2
    assert len(set(tried)) == len(tried)
