"""Passes of a proof: over operands of more and more axes, as far as there are steps."""

from relax_egraph.prove.effort import passes


def ranks_of(taken: dict[int, int], least: int = 0, empty: int = -1) -> list[int]:
    """The passes that are made if those of each rank take so many steps, and one is `empty`."""
    made: list[int] = []
    for one in passes(((2, 1000), (3, 200), (4, 500)), least):
        made.append(one.ranks)
        if taken[one.ranks] > one.effort.left:
            break  # it took too many steps
        one.effort.spend(taken[one.ranks])
        one.is_empty = one.ranks == empty
    return made


def test_passes_have_more_and_more_axes() -> None:
    assert ranks_of({2: 10, 3: 50, 4: 250}) == [2, 3, 4]


def test_a_pass_that_takes_too_many_steps_is_the_last() -> None:
    assert ranks_of({2: 1001, 3: 0, 4: 0}) == [2]
    assert ranks_of({2: 10, 3: 201, 4: 0}) == [2, 3]


def test_a_pass_that_would_take_too_many_steps_is_left_out() -> None:
    assert ranks_of({2: 300, 3: 0, 4: 400}) == [2, 4]
    assert ranks_of({2: 10, 3: 100, 4: 0}) == [2, 3]


def test_a_pass_without_instances_says_nothing_of_the_next() -> None:
    assert ranks_of({2: 10, 3: 100, 4: 400}, empty=2) == [2, 3, 4]


def test_operands_may_have_more_axes_than_a_pass() -> None:
    assert ranks_of({4: 10}, least=4) == [4]
    assert ranks_of({3: 10, 4: 20}, least=3) == [3, 4]
