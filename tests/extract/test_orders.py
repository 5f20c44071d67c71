"""The order in which classes are decided: the narrower of two."""

import pytest

from relax_egraph.extract.orders import narrow_order
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


@pytest.mark.parametrize(("edges", "width"), [(CHAINS, 4), (LADDER, 2)], ids=["chains", "ladder"])
def test_the_order_has_users_before_their_inputs_and_its_width(
    edges: dict[int, tuple[int, ...]], width: int
) -> None:
    order, found = narrow_order(*layered(edges))

    place = {c: k for k, c in enumerate(order)}
    assert sorted(order) == sorted(edges)
    assert all(place[c] < place[d] for c, inputs in edges.items() for d in inputs)
    assert found == width


def test_of_chains_one_is_decided_after_the_other() -> None:
    order, _ = narrow_order(*layered(CHAINS))

    chains = [c % 4 for c in order[1:-1]]
    assert chains == sorted(chains, key=chains.index)
