"""Passes of a proof: over operands of more and more axes, as far as there are steps."""

from collections import Counter

import pytest

from relax_egraph import rules
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.prove.effort import PROBE, Schedule, passes
from relax_egraph.prove.prove import prove
from relax_egraph.prove.questions import recording

pytest.importorskip("z3", reason="proofs need z3-solver")

BOOK = RuleBook.default(fast_math=True, bounded=True)
RULES = {rule.name: rule for rule in BOOK.rules}

SCHEDULE = ((2, 10_000), (3, 2000), (4, 5000))


def passes_of(taken: dict[int, int], least: int = 0, empty: int = -1) -> list[tuple[int, int, int]]:
    """What each pass is above, its rank and steps, if those of each rank take so many steps."""
    made: list[tuple[int, int, int]] = []
    for one in passes(SCHEDULE, least):
        made.append((one.above, one.ranks, one.effort.left))
        if taken[one.ranks] > one.effort.left:
            break  # it took too many steps
        one.effort.spend(taken[one.ranks])
        one.is_empty = one.ranks == empty
    return made


def test_passes_have_more_and_more_axes() -> None:
    expected = [(-1, 2, 10_000), (2, 3, 2000), (3, 4, 5000)]
    assert passes_of({2: 100, 3: 500, 4: 2500}) == expected


def test_a_pass_that_takes_too_many_steps_is_the_last() -> None:
    assert passes_of({2: 10_001}) == [(-1, 2, 10_000)]
    assert passes_of({2: 100, 3: 2001}) == [(-1, 2, 10_000), (2, 3, 2000)]


def test_a_pass_that_would_take_too_many_steps_is_only_begun() -> None:
    assert passes_of({2: 1001, 3: 1500}) == [(-1, 2, 10_000), (2, 3, PROBE)]
    assert passes_of({2: 100, 3: 1000, 4: 1500}) == [
        *((-1, 2, 10_000), (2, 3, 2000)),
        (3, 4, PROBE),
    ]


def test_a_pass_that_ends_sooner_than_expected_is_followed_by_another() -> None:
    expected = [(-1, 2, 10_000), (2, 3, PROBE), (3, 4, 5000)]
    assert passes_of({2: 1001, 3: 500, 4: 10}) == expected


def test_a_pass_without_instances_says_nothing_of_the_next() -> None:
    expected = [(-1, 2, 10_000), (2, 3, 2000), (3, 4, 5000)]
    assert passes_of({2: 5000, 3: 100, 4: 400}, empty=2) == expected


def test_operands_may_have_more_axes_than_a_pass() -> None:
    assert passes_of({4: 10}, least=4) == [(-1, 4, 10_000)]
    assert passes_of({3: 10, 4: 20}, least=3) == [(-1, 3, 10_000), (3, 4, 5000)]


AT_ONCE = ((3, 60_000),)
ONE_BY_ONE = ((1, 20_000), (2, 20_000), (3, 60_000))


@pytest.mark.parametrize(
    "name",
    [
        *("permute-and-back", "split-as-slice", "binary-of-permuted", "all-gather-of-shards"),
        *(pytest.param(n, marks=pytest.mark.fuzz) for n in ("concat-by-parts", "reduction-of-one")),
    ],
)
def test_each_instance_is_of_one_pass(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once, one_by_one = (instances(RULES[name], s, monkeypatch) for s in (AT_ONCE, ONE_BY_ONE))

    assert at_once.total() > 3
    assert one_by_one == at_once


MORE_AXES = """\
; y + x = x + y, where the shape of y, of one axis more, follows from x
; float: exact
(rewrite (R.add (R.expand_dims x (vec-of 0)) y) (R.add y (R.expand_dims x (vec-of 0)))
  :name "swapped")
"""


def test_an_operand_may_have_more_axes_than_those_that_are_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    book = RuleBook.default([rules.Rules((("own.egg", MORE_AXES),))], families=(), fast_math=True)
    rule = next(r for r in book.rules if r.name == "swapped")

    at_once, one_by_one = (
        instances(rule, s, monkeypatch, book) for s in (((4, 60_000),), (*ONE_BY_ONE, (4, 60_000)))
    )

    assert any("y_0" not in text and "(x_0, x_1, x_2)" in text for text in at_once)
    assert one_by_one == at_once


def instances(
    rule: Rule, schedule: Schedule, monkeypatch: pytest.MonkeyPatch, book: RuleBook = BOOK
) -> Counter[str]:
    """The general instances of a rule that is proven by a schedule."""
    monkeypatch.setattr("relax_egraph.prove.prove.PASSES", schedule)
    with recording() as record:
        assert prove(rule, book).status == "proven"
    return Counter(map(str, record.instances))
