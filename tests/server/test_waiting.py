"""Which waiting calls run next."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relax_egraph.server.waiting import Waiting, WaitingCalls

MOST = 8
WAIT = 2.0


def waiting(*calls: tuple[str | None, int, float]) -> WaitingCalls[int]:
    """Calls of a kind, with rows, since a time; each is named by its number."""
    queue = WaitingCalls[int](MOST, WAIT)
    for number, (kind, rows, since) in enumerate(calls):
        queue.add(Waiting(number, kind, rows, since))
    return queue


def taken(queue: WaitingCalls[int]) -> list[int]:
    return [w.call for w in queue.take()]


def test_calls_of_a_kind_are_joined_oldest_first_as_far_as_they_fit() -> None:
    queue = waiting(("a", 3, 0), ("b", 1, 0.5), ("a", 4, 1), ("a", 2, 1))

    assert [taken(queue), taken(queue), taken(queue), len(queue)] == [[0, 2], [1], [3], 0]


def test_a_call_waits_for_others_at_most_its_time() -> None:
    queue = waiting(("a", 1, 10.0), ("b", 1, 9.0))

    assert [queue.seconds_left(now) for now in (10.0, 10.5, 11.0, 12.0)] == [1.0, 0.5, 0, 0]


def test_a_full_group_is_due_at_once() -> None:
    assert waiting(("a", 7, 10.0)).seconds_left(10.0) == WAIT
    assert waiting(("a", 7, 10.0), ("a", 1, 10.0)).seconds_left(10.0) == 0


def test_a_call_of_more_rows_runs_alone_and_at_once() -> None:
    queue = waiting(("a", 9, 0), ("a", 1, 0))

    assert queue.seconds_left(0) == 0
    assert [taken(queue), taken(queue)] == [[0], [1]]


def test_calls_of_no_kind_are_joined_with_none() -> None:
    queue = waiting((None, 1, 0), (None, 1, 0))

    assert queue.seconds_left(0) == 0
    assert [taken(queue), taken(queue)] == [[0], [1]]


@given(
    st.lists(
        st.tuples(st.sampled_from([None, "a", "b"]), st.integers(0, 12), st.floats(0, 9)),
        max_size=30,
    )
)
def test_every_call_is_taken_once_in_the_order_of_its_kind(
    calls: list[tuple[str | None, int, float]],
) -> None:
    queue = waiting(*sorted(calls, key=lambda call: call[2]))
    batches = list[list[Waiting[int]]]()
    while queue:
        batches.append([*queue.take()])

    order = [w.call for batch in batches for w in batch]
    assert sorted(order) == list(range(len(calls)))
    for batch in batches:
        assert len({w.kind for w in batch}) == 1
        assert len(batch) == 1 or (batch[0].kind and sum(w.rows for w in batch) <= MOST)
    for kind in ("a", "b"):
        of_kind = [w.call for batch in batches for w in batch if w.kind == kind]
        assert of_kind == sorted(of_kind)


def test_nothing_waits_in_an_empty_queue() -> None:
    with pytest.raises(ValueError, match="empty"):
        waiting().take()
