"""Orders in which classes are decided: users before their inputs, a component together."""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from relax_egraph.extract.problem import Problem
from relax_egraph.extract.prune import Pruned

MOST_NEEDED = 300
"""The most classes that are undecided and needed by decided ones, in a problem that is not wide."""


def orders_of(problem: Problem, pruned: Pruned) -> Iterator[Sequence[int]]:
    """Orders that are not too wide: by branches, which mostly have fewer frontiers; by levels.

    Levels are the order of `pruned`.  Which order has fewer frontiers is not known before: neither
    the widths nor their sums say it.
    """
    for order in (_by_branches(problem, pruned), list(pruned.options)[::-1]):
        if _width(problem, pruned, order) <= MOST_NEEDED:
            yield order


def _width(problem: Problem, pruned: Pruned, order: Sequence[int]) -> int:
    """The most classes that are undecided at a place of `order`, and that earlier ones may read."""
    place = {c: k for k, c in enumerate(order)}
    change = [0] * (len(order) + 1)
    reached: set[int] = set()
    for c in order:
        for number in pruned.options[c]:
            for d in problem.candidates[number].inputs - reached:
                if place[d] > place[c]:
                    reached.add(d)
                    change[place[c]] += 1
                    change[place[d]] -= 1
    return max(accumulate(change))


def _by_branches(problem: Problem, pruned: Pruned) -> list[int]:
    """The classes by branches: of parallel ones one is decided after the other.

    What the last classes need comes next.
    """
    members: dict[int, list[int]] = {}
    for c in list(pruned.options)[::-1]:
        members.setdefault(pruned.component[c], []).append(c)
    inputs: dict[int, list[int]] = {}
    waiting = dict.fromkeys(members, 0)
    for component, classes in members.items():
        needed = (
            d for c in classes for n in pruned.options[c] for d in problem.candidates[n].inputs
        )
        below = dict.fromkeys(pruned.component[d] for d in needed)
        below.pop(component, None)
        inputs[component] = list(below)
        for k in below:
            waiting[k] += 1
    order: list[int] = []
    ready = [component for component, users in waiting.items() if not users]
    while ready:
        component = ready.pop()
        order += members[component]
        for k in inputs[component]:
            waiting[k] -= 1
            if not waiting[k]:
                ready.append(k)
    return order
