"""Passes of a proof: over operands of more and more axes, as far as there are steps."""

from collections import Counter
from collections.abc import Mapping

from relax_egraph.prove.effort import GROWTH, Effort, Pass, passes


def ranks_of(
    taken: Mapping[int, int], seen: Mapping[int, Mapping[int, int]] | None = None, least: int = 0
) -> list[int]:
    """The passes that are made if those of each rank take so many steps, and see such instances."""
    made: list[int] = []
    for one in passes(((2, 1000), (3, 200), (4, 500)), least):
        made.append(one.ranks)
        if taken[one.ranks] > one.effort.left:
            break  # it took too many steps
        one.effort.spend(taken[one.ranks])
        one.seen.update((seen or {}).get(one.ranks, {}))
    return made


def test_passes_have_more_and_more_axes() -> None:
    assert ranks_of({2: 10, 3: 50, 4: 250}) == [2, 3, 4]


def test_a_pass_that_takes_too_many_steps_is_the_last() -> None:
    assert ranks_of({2: 1001, 3: 0, 4: 0}) == [2]
    assert ranks_of({2: 10, 3: 201, 4: 0}) == [2, 3]


def test_a_pass_that_would_take_too_many_steps_is_left_out() -> None:
    assert ranks_of({2: 300, 3: 0, 4: 400}) == [2, 4]
    assert ranks_of({2: 100, 4: 500}, {2: {1: 10, 2: 20}}) == [2, 4]
    assert ranks_of({2: 100}, {2: {1: 10, 2: 30}}) == [2]


def test_a_pass_without_instances_says_nothing_of_the_next() -> None:
    assert ranks_of({2: 100, 3: 180, 4: 400}) == [2, 3, 4]
    assert ranks_of({2: 100, 3: 180}, {3: {3: 5}}) == [2, 3]


def test_operands_may_have_more_axes_than_a_pass() -> None:
    assert ranks_of({4: 10}, least=4) == [4]
    assert ranks_of({3: 10, 4: 20}, least=3) == [3, 4]


def test_instances_of_each_rank_grow_as_those_of_the_last() -> None:
    def expected(seen: Mapping[int, int], ranks: int) -> float:
        return Pass(2, Effort(1000), Counter(seen)).expected(84, ranks)

    assert expected({0: 24, 1: 24, 2: 24}, 4) == 84 / 3 * 5
    assert expected({0: 1, 1: 4, 2: 16}, 3) == 84 / 21 * (21 + 64)
    assert expected({2: 10}, 4) == 84 * (1 + GROWTH + GROWTH**2)
    assert expected({}, 4) == 84
