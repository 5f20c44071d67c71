"""Barriers: sets of classes that no solution produces a class of without entering the set.

A candidate *enters* a set if it produces a class of it and needs none.  A solution has no cycle, so
of the classes of the set that it produces the first one is produced by a candidate that enters.
Hence for any set and any class `top` of it:

    Σ x (of the candidates that enter)  >=  (is `top` produced)

These are the directed cuts of Steiner trees, for graphs whose edges need several classes.  They
hold for every set, exclude cycles, and are far stronger than the edge rows: of ten ways to compute
a product, in ten classes, they see that one is taken.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from relax_egraph.extract.problem import Problem
from relax_egraph.extract.prune import Pruned
from relax_egraph.extract.rows import Row


@dataclass(frozen=True, slots=True)
class Barrier:
    """A set of `classes`, and one of them, `top`, whose production demands that one enters."""

    top: int
    classes: frozenset[int]


def entering(problem: Problem, pruned: Pruned, classes: frozenset[int]) -> list[int]:
    """The candidates that enter `classes`."""
    return [
        number
        for c in sorted(classes)
        for number in pruned.options[c]
        if classes.isdisjoint(problem.candidates[number].inputs)
    ]


def row_at(problem: Problem, pruned: Pruned, barrier: Barrier, column: Mapping[int, int]) -> Row:
    """The row of `barrier`; `column` has the variable of each candidate."""
    entries = {column[number]: 1.0 for number in entering(problem, pruned, barrier.classes)}
    if barrier.top in pruned.needed:
        return Row(entries, 1.0, math.inf)
    for number in pruned.options[barrier.top]:
        entries[column[number]] = entries.get(column[number], 0.0) - 1.0
    return Row({place: value for place, value in entries.items() if value}, 0.0, math.inf)
