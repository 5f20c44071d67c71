"""An independent check of a selection; it shares no code with pruning and solving."""

import math
from collections.abc import Mapping

from relax_egraph.errors import ExtractionError
from relax_egraph.extract.problem import Problem, Selection

_TOLERANCE = 1e-9
"""The relative error of adding costs in another order."""

_SMALL = 24
"""The most classes for which `cheapest` enumerates all solutions."""


def certify(problem: Problem, selection: Selection) -> None:
    """Raise `ExtractionError` with every fault of `selection`, if it has one.

    A solution produces each root and each input of its candidates exactly once and before its use,
    so it has no cycle.  Its cost is the sum of its candidates, and its bound is not above that.
    """
    faults = _incomplete(problem, selection) + _out_of_order(problem, selection)
    faults += _wrong_numbers(problem, selection)
    if faults:
        raise ExtractionError("the selection does not hold:\n" + "\n".join(faults))


def _incomplete(problem: Problem, selection: Selection) -> list[str]:
    faults: list[str] = []
    makers: dict[int, int] = {}
    for number in selection.chosen:
        output = problem.candidates[number].output
        makers[output] = makers.get(output, 0) + 1
    faults += [f"class {c} is made {n} times" for c, n in makers.items() if n > 1]
    faults += [f"root {c} is not made" for c in problem.roots if c not in makers]
    for number in selection.chosen:
        candidate = problem.candidates[number]
        faults += [
            f"class {c} is not made, and class {candidate.output} needs it"
            for c in sorted(candidate.inputs)
            if c not in makers
        ]
    return faults


def _out_of_order(problem: Problem, selection: Selection) -> list[str]:
    chosen = [problem.candidates[number] for number in selection.chosen]
    outputs = {candidate.output for candidate in chosen}
    faults: list[str] = []
    produced: set[int] = set()
    for candidate in chosen:
        late = sorted((candidate.inputs & outputs) - produced)
        faults += [f"class {candidate.output} is made before class {c}, its input" for c in late]
        produced.add(candidate.output)
    if faults:
        waiting = {candidate.output: candidate.inputs & outputs for candidate in chosen}
        while ready := [c for c, inputs in waiting.items() if not inputs & waiting.keys()]:
            for c in ready:
                del waiting[c]
        if waiting:
            faults.append(f"there is a cycle among the classes {sorted(waiting)}")
    return faults


def _wrong_numbers(problem: Problem, selection: Selection) -> list[str]:
    total = sum(problem.candidates[number].cost for number in selection.chosen)
    slack = _TOLERANCE * max(1e-300, abs(total))
    faults: list[str] = []
    if not abs(selection.cost - total) <= slack:
        faults.append(f"the cost is said to be {selection.cost:g}, the candidates cost {total:g}")
    if not selection.bound <= selection.cost + slack:
        faults.append(
            f"the bound {selection.bound:g} is above the cost {selection.cost:g}, "
            f"says: {selection.bound_source}"
        )
    return faults


def cheapest(problem: Problem) -> float:
    """The least cost of any solution, by enumeration; infinite if there is none.

    Raises ``ValueError`` for more than 24 classes: it takes exponential time.
    """
    by_class: dict[int, list[int]] = {}
    for number, candidate in enumerate(problem.candidates):
        by_class.setdefault(candidate.output, []).append(number)
    if len(by_class) > _SMALL:
        raise ValueError(f"{len(by_class)} classes are too many to try everything")
    return _try_all(problem, by_class, {}, set(problem.roots), 0.0, math.inf)


def _try_all(
    problem: Problem,
    by_class: Mapping[int, list[int]],
    taken: dict[int, int],
    missing: set[int],
    cost: float,
    least: float,
) -> float:
    if cost >= least:
        return least
    if not missing:
        return cost
    c = min(missing)
    for number in by_class.get(c, ()):
        candidate = problem.candidates[number]
        if _reaches(problem, taken, candidate.inputs, c):
            continue
        taken[c] = number
        still = (missing | candidate.inputs) - taken.keys()
        least = _try_all(problem, by_class, taken, still, cost + candidate.cost, least)
        del taken[c]
    return least


def _reaches(problem: Problem, taken: Mapping[int, int], start: frozenset[int], goal: int) -> bool:
    """Whether `goal` is one of `start`, or a transitive input of one among those taken so far."""
    todo, seen = set(start), set[int]()
    while todo:
        c = todo.pop()
        if c == goal:
            return True
        seen.add(c)
        if c in taken:
            todo |= problem.candidates[taken[c]].inputs - seen
    return False
