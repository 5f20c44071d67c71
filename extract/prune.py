"""Candidates that some best solution does without, and classes that no solution does without.

Every step leaves at least one best solution.  Classes are bits of integers, in an order in
which inputs come first wherever there is no cycle, so that the sets below settle in few rounds.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from relax_egraph.extract.components import components
from relax_egraph.extract.problem import Problem, computable

_ROUNDS = 5
"""How often removing candidates is tried anew."""

_SETTLE = 20
"""How often the needed sets are refined before they are given up as unsettled."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """What is left of a problem.

    `options` are the candidates of every class that the roots may need, inputs first where
    there is no cycle; the classes `needed` are in every solution; `component` numbers the strongly
    connected components, and `size` says how many classes each has.
    """

    options: Mapping[int, tuple[int, ...]]
    needed: frozenset[int]
    component: Mapping[int, int]
    size: Mapping[int, int]

    def in_cycle(self, a: int, b: int) -> bool:
        """Whether some cycle of classes goes through `a` and `b`."""
        return self.component[a] == self.component[b] and self.size[self.component[a]] > 1


def prune(problem: Problem) -> Pruned:
    """Remove candidates until nothing changes; the roots must be computable."""
    options = _undominated(problem)
    for _ in range(_ROUNDS):
        pruned, always = _analysed(problem, options)
        options = {
            c: _without_beaten(problem, c, numbers, pruned, always)
            for c, numbers in pruned.options.items()
        }
        if all(len(options[c]) == len(numbers) for c, numbers in pruned.options.items()):
            return pruned
    return _analysed(problem, options)[0]


def _undominated(problem: Problem) -> dict[int, tuple[int, ...]]:
    """Candidates of finite cost; of one class, none that needs all that a cheaper one needs."""
    made = computable(problem)
    kept: dict[int, list[int]] = {c: [] for c in made}
    candidates = problem.candidates
    for number in sorted(
        range(len(candidates)), key=lambda n: (candidates[n].cost, len(candidates[n].inputs))
    ):
        candidate = candidates[number]
        usable = candidate.inputs <= made and candidate.output not in candidate.inputs
        if usable and not any(
            candidates[better].inputs <= candidate.inputs for better in kept[candidate.output]
        ):
            kept[candidate.output].append(number)
    return {c: tuple(numbers) for c, numbers in kept.items()}


@dataclass(frozen=True, slots=True)
class _Always:
    """The classes in every way of making a class, and of making the roots, as sets of bits.

    `most` is what some way of making a class costs, beside what every solution makes.
    """

    bit: Mapping[int, int]
    below: Mapping[int, int]
    roots: int
    most: Mapping[int, float]

    def direct(self, inputs: frozenset[int]) -> int:
        """The classes themselves."""
        result = 0
        for c in inputs:
            result |= self.bit[c]
        return result

    def under(self, inputs: frozenset[int]) -> int:
        """All that making `inputs` takes in any case, themselves among them."""
        result = 0
        for c in inputs:
            result |= self.below[c]
        return result


def _analysed(problem: Problem, options: Mapping[int, tuple[int, ...]]) -> tuple[Pruned, _Always]:
    """What the roots reach of `options`, its components, and its needed sets."""
    reached: dict[int, list[int]] = {}
    todo = list(problem.roots)
    while todo:
        c = todo.pop()
        if c not in reached:
            inputs = (problem.candidates[n].inputs for n in options[c])
            reached[c] = sorted(frozenset[int]().union(*inputs))
            todo.extend(reached[c])
    found = components(reached)
    order = [c for members in found for c in members]
    bit = {c: 1 << place for place, c in enumerate(order)}
    below = _below(problem, options, bit)
    in_all = 0
    for root in problem.roots:
        in_all |= below[root]
    pruned = Pruned(
        {c: options[c] for c in order},
        frozenset(c for c in order if in_all & bit[c]),
        {c: number for number, members in enumerate(found) for c in members},
        {number: len(members) for number, members in enumerate(found)},
    )
    return pruned, _Always(bit, below, in_all, _most(problem, pruned))


def _most(problem: Problem, pruned: Pruned) -> dict[int, float]:
    """For each class the least cost of a derivation as a tree, in which needed classes are free."""
    most = {c: 0.0 if c in pruned.needed else math.inf for c in pruned.options}
    changed = True
    while changed:
        changed = False
        for c, numbers in pruned.options.items():
            for number in numbers:
                candidate = problem.candidates[number]
                cost = candidate.cost + sum([most[d] for d in candidate.inputs])
                if cost < most[c]:
                    most[c], changed = cost, True
    return most


def _below(
    problem: Problem, options: Mapping[int, tuple[int, ...]], bit: Mapping[int, int]
) -> dict[int, int]:
    """For each class those in every derivation of it.

    The greatest fixpoint of ``below(c) = {c} ∪ ⋂ (candidates of c) ⋃ (inputs d) below(d)``; if
    it does not settle, the class alone, which is always true.
    """
    everything = (1 << len(bit)) - 1
    below = dict.fromkeys(bit, everything)
    for _ in range(_SETTLE):
        changed = False
        for c in bit:
            common = everything
            for number in options[c]:
                union = 0
                for d in problem.candidates[number].inputs:
                    union |= below[d]
                common &= union
            common |= bit[c]
            if common != below[c]:
                below[c] = common
                changed = True
        if not changed:
            return below
    return dict(bit)


def _without_beaten(
    problem: Problem, c: int, numbers: tuple[int, ...], pruned: Pruned, always: _Always
) -> tuple[int, ...]:
    """`numbers` without those that another of them can stand in for, in any solution.

    ``a`` can stand in for ``b`` if it costs no more, and each class it needs is there in any
    case: below ``b``, or in every solution and (so that no cycle closes) in another component.
    Or if it costs less even together with making all that it needs besides.
    """
    if len(numbers) < 2:
        return numbers
    candidates = problem.candidates
    inputs = frozenset[int]().union(*(candidates[n].inputs for n in numbers))
    cyclic = always.direct(frozenset(d for d in inputs if pruned.in_cycle(c, d)))
    free = always.roots & ~cyclic
    below = {n: always.under(candidates[n].inputs) for n in numbers}
    alive = [n for n in numbers if not below[n] & always.bit[c]]

    def stands_in(a: int, b: int) -> bool:
        spare = candidates[b].cost - candidates[a].cost
        there = below[b] | free
        missing = [d for d in candidates[a].inputs if not always.bit[d] & there]
        if spare < 0 or not missing:
            return spare >= 0
        if any(always.bit[d] & cyclic for d in missing):
            return False
        return sum([always.most[d] for d in missing]) < spare

    for a in tuple(alive):
        if a in alive:
            alive = [b for b in alive if b == a or not stands_in(a, b)]
    return tuple(alive)
