"""The choice problem as rows of a linear program; what any solver of such programs takes.

One 0/1 variable for each candidate; a class is made if one of its candidates is taken.

* ``Σ x = 1`` for a class that every solution needs, ``Σ x <= 1`` for any other.
* An edge from a class to an input: all candidates of the class that need the input, in one
  row, ``Σ x <= `` (is the input made); this is tighter than a row for each candidate.

Cycles are not ruled out: `around` does that, one by one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from relax_egraph.extract.problem import Problem
from relax_egraph.extract.prune import Pruned


@dataclass(frozen=True, slots=True)
class Row:
    """``lower <= Σ value · variable <= upper``."""

    entries: Mapping[int, float]
    lower: float
    upper: float


@dataclass(slots=True)
class Rows:
    """Rows in compressed form; the variable of a candidate is its place in `numbers`."""

    numbers: Sequence[int]
    starts: list[int] = field(default_factory=lambda: [0])
    columns: list[int] = field(default_factory=list[int])
    values: list[float] = field(default_factory=list[float])
    lower: list[float] = field(default_factory=list[float])
    upper: list[float] = field(default_factory=list[float])

    def add(self, row: Row) -> None:
        """Append `row`."""
        self.columns.extend(row.entries)
        self.values.extend(row.entries.values())
        self.starts.append(len(self.columns))
        self.lower.append(row.lower)
        self.upper.append(row.upper)


def rows_of(problem: Problem, pruned: Pruned) -> Rows:
    """All rows but those of cycles."""
    numbers = [number for options in pruned.options.values() for number in options]
    column = {number: place for place, number in enumerate(numbers)}
    rows = Rows(numbers)
    for c, options in pruned.options.items():
        if c in pruned.needed:
            rows.add(Row({column[n]: 1.0 for n in options}, 1.0, 1.0))
        elif len(options) > 1:
            rows.add(Row({column[n]: 1.0 for n in options}, 0.0, 1.0))
        users: dict[int, list[int]] = {}
        for number in options:
            for needed in problem.candidates[number].inputs:
                users.setdefault(needed, []).append(column[number])
        for needed, using in users.items():
            if needed not in pruned.needed:
                made = {column[n]: 1.0 for n in pruned.options[needed]}
                rows.add(Row(made | dict.fromkeys(using, -1.0), 0.0, math.inf))
    return rows
