"""Pruning: removes dominated candidates, and finds the classes that every solution contains.

Every step preserves at least one optimal solution.  Sets of classes are bit sets of integers,
inputs first wherever there is no cycle, so that the fixpoints below converge in few rounds.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from relax_egraph.extract.components import components
from relax_egraph.extract.problem import Problem, computable

_ROUNDS = 5
"""Rounds of removing dominated candidates at most."""

_SETTLE = 20
"""Rounds of the fixpoint of dominators before it is abandoned."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """A pruned problem.

    `options` are the remaining candidates of every class that the roots may need, inputs first
    where there is no cycle.  The classes `needed` are in every solution.  `component` is the number
    of the strongly connected component of a class, `size` the number of classes of a component.
    """

    options: Mapping[int, tuple[int, ...]]
    needed: frozenset[int]
    component: Mapping[int, int]
    size: Mapping[int, int]

    def in_cycle(self, a: int, b: int) -> bool:
        """Whether some cycle of classes goes through `a` and `b`."""
        return self.component[a] == self.component[b] and self.size[self.component[a]] > 1


def prune(problem: Problem) -> Pruned:
    """Remove dominated candidates until none is left; the roots must be computable."""
    options = _finite_and_undominated(problem)
    for _ in range(_ROUNDS):
        pruned, always = _analyzed(problem, options)
        options = {
            c: _without_dominated(problem, c, numbers, pruned, always)
            for c, numbers in pruned.options.items()
        }
        if all(len(options[c]) == len(numbers) for c, numbers in pruned.options.items()):
            return pruned
    return _analyzed(problem, options)[0]


def _finite_and_undominated(problem: Problem) -> dict[int, tuple[int, ...]]:
    """Candidates of finite cost; none whose inputs are a superset of a cheaper one's."""
    derivable = computable(problem)
    kept: dict[int, list[int]] = {c: [] for c in derivable}
    candidates = problem.candidates
    for number in sorted(
        range(len(candidates)), key=lambda n: (candidates[n].cost, len(candidates[n].inputs))
    ):
        candidate = candidates[number]
        usable = candidate.inputs <= derivable and candidate.output not in candidate.inputs
        if usable and not any(
            candidates[better].inputs <= candidate.inputs for better in kept[candidate.output]
        ):
            kept[candidate.output].append(number)
    return {c: tuple(numbers) for c, numbers in kept.items()}


@dataclass(frozen=True, slots=True)
class _Dominators:
    """The classes in every derivation of a class, and of the roots, as bit sets.

    `upper` bounds the cost of some derivation of a class, where needed classes are free.
    """

    bit: Mapping[int, int]
    of_class: Mapping[int, int]
    of_roots: int
    upper: Mapping[int, float]

    def bits(self, inputs: frozenset[int]) -> int:
        """The classes `inputs` as a bit set."""
        result = 0
        for c in inputs:
            result |= self.bit[c]
        return result

    def of(self, inputs: frozenset[int]) -> int:
        """The classes in every derivation of all `inputs`, these included."""
        result = 0
        for c in inputs:
            result |= self.of_class[c]
        return result


def _analyzed(
    problem: Problem, options: Mapping[int, tuple[int, ...]]
) -> tuple[Pruned, _Dominators]:
    """The part of `options` that the roots reach, its components, and its dominators."""
    reached: dict[int, list[int]] = {}
    todo = list(problem.roots)
    while todo:
        c = todo.pop()
        if c not in reached:
            inputs = (problem.candidates[n].inputs for n in options[c])
            reached[c] = sorted(frozenset[int]().union(*inputs))
            todo.extend(reached[c])
    groups = components(reached)
    order = [c for members in groups for c in members]
    bit = {c: 1 << place for place, c in enumerate(order)}
    dominators = _dominators(problem, options, bit)
    in_all = 0
    for root in problem.roots:
        in_all |= dominators[root]
    pruned = Pruned(
        {c: options[c] for c in order},
        frozenset(c for c in order if in_all & bit[c]),
        {c: number for number, members in enumerate(groups) for c in members},
        {number: len(members) for number, members in enumerate(groups)},
    )
    return pruned, _Dominators(bit, dominators, in_all, _upper_bounds(problem, pruned))


def _upper_bounds(problem: Problem, pruned: Pruned) -> dict[int, float]:
    """For each class the least tree cost of a derivation in which needed classes are free."""
    upper = {c: 0.0 if c in pruned.needed else math.inf for c in pruned.options}
    changed = True
    while changed:
        changed = False
        for c, numbers in pruned.options.items():
            for number in numbers:
                candidate = problem.candidates[number]
                cost = candidate.cost + sum([upper[d] for d in candidate.inputs])
                if cost < upper[c]:
                    upper[c], changed = cost, True
    return upper


def _dominators(
    problem: Problem, options: Mapping[int, tuple[int, ...]], bit: Mapping[int, int]
) -> dict[int, int]:
    """For each class the classes in every derivation of it, as bit sets.

    The greatest fixpoint of ``D(c) = {c} ∪ ⋂ (candidates of c) ⋃ (inputs d) D(d)``; if it does not
    converge, the class alone, which always holds.
    """
    everything = (1 << len(bit)) - 1
    dominators = dict.fromkeys(bit, everything)
    for _ in range(_SETTLE):
        changed = False
        for c in bit:
            common = everything
            for number in options[c]:
                union = 0
                for d in problem.candidates[number].inputs:
                    union |= dominators[d]
                common &= union
            common |= bit[c]
            if common != dominators[c]:
                dominators[c] = common
                changed = True
        if not changed:
            return dominators
    return dict(bit)


def _without_dominated(
    problem: Problem, c: int, numbers: tuple[int, ...], pruned: Pruned, always: _Dominators
) -> tuple[int, ...]:
    """`numbers` without those that another of them can replace in any solution.

    ``a`` replaces ``b`` if it costs no more and every class that it needs is present anyway: it
    dominates ``b``, or it is in every solution and (so that no cycle closes) in another component.
    Or if it costs less even together with producing all that it needs besides.
    """
    if len(numbers) < 2:
        return numbers
    candidates = problem.candidates
    inputs = frozenset[int]().union(*(candidates[n].inputs for n in numbers))
    cyclic = always.bits(frozenset(d for d in inputs if pruned.in_cycle(c, d)))
    free = always.of_roots & ~cyclic
    dominators = {n: always.of(candidates[n].inputs) for n in numbers}
    alive = [n for n in numbers if not dominators[n] & always.bit[c]]

    def replaces(a: int, b: int) -> bool:
        spare = candidates[b].cost - candidates[a].cost
        present = dominators[b] | free
        missing = [d for d in candidates[a].inputs if not always.bit[d] & present]
        if spare < 0 or not missing:
            return spare >= 0
        if any(always.bit[d] & cyclic for d in missing):
            return False
        return sum([always.upper[d] for d in missing]) < spare

    for a in tuple(alive):
        if a in alive:
            alive = [b for b in alive if b == a or not replaces(a, b)]
    return tuple(alive)
