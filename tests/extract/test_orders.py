"""The orders in which classes are decided."""

import pytest

from relax_egraph.extract import orders
from relax_egraph.extract.orders import orders_of
from relax_egraph.extract.problem import Candidate, Problem
from relax_egraph.extract.prune import Pruned


def layered(edges: dict[int, tuple[int, ...]]) -> tuple[Problem, Pruned]:
    """A class for each key, inputs first, with two ways to make it of its inputs."""
    candidates = [Candidate(c, frozenset(d), cost) for c, d in edges.items() for cost in (1.0, 2.0)]
    options = {c: (2 * k, 2 * k + 1) for k, c in enumerate(edges)}
    root = max(edges)
    component, size = {c: c for c in edges}, dict.fromkeys(edges, 1)
    return Problem(tuple(candidates), (root,)), Pruned(options, frozenset((root,)), component, size)


CHAINS = {0: ()} | {c: (max(0, c - 4),) for c in range(1, 41)} | {41: (37, 38, 39, 40)}
"""Four parallel chains, numbered in turn."""

LADDER = {0: (), 1: ()} | {c: (c - 1, c - 2) for c in range(2, 40)}
"""Each class needs the two before it."""


@pytest.mark.parametrize("edges", [CHAINS, LADDER], ids=["chains", "ladder"])
def test_orders_have_users_before_their_inputs(edges: dict[int, tuple[int, ...]]) -> None:
    found = list(orders_of(*layered(edges)))

    assert len(found) == 2
    for order in found:
        place = {c: k for k, c in enumerate(order)}
        assert sorted(order) == sorted(edges)
        assert all(place[c] < place[d] for c, inputs in edges.items() for d in inputs)


def test_by_branches_one_chain_is_decided_after_the_other_and_by_levels_in_turn() -> None:
    branches, levels = ([c % 4 for c in order[1:-1]] for order in orders_of(*layered(CHAINS)))

    assert branches == sorted(branches, key=branches.index)
    assert levels[:4] == levels[4:8]
    assert len(set(levels[:4])) == 4


@pytest.mark.parametrize(("most", "count"), [(4, 2), (3, 0)])
def test_orders_that_are_too_wide_are_left_out(
    most: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orders, "MOST_NEEDED", most)

    assert len(list(orders_of(*layered(CHAINS)))) == count
