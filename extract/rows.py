"""The selection problem as the rows of a linear program, independent of the solver.

One 0/1 variable for each candidate; a class is produced if one of its candidates is taken.

* ``Σ x = 1`` for a class that every solution contains, ``Σ x <= 1`` for any other.
* For each edge from a class to an input, one row of all candidates of the class that need the
  input:  ``Σ x <= `` (is the input produced).  This is tighter than a row for each candidate.

Cycles are excluded by `barriers`, which are added lazily.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from relax_egraph.extract.problem import Problem
from relax_egraph.extract.prune import Pruned

VIOLATION = 1e-4
"""The least violation of a row that counts."""


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

    @property
    def column(self) -> Mapping[int, int]:
        """The variable of each candidate."""
        return {number: place for place, number in enumerate(self.numbers)}

    def add(self, row: Row) -> None:
        """Append `row`."""
        self.columns.extend(row.entries)
        self.values.extend(row.entries.values())
        self.starts.append(len(self.columns))
        self.lower.append(row.lower)
        self.upper.append(row.upper)

    def violated(self, values: npt.NDArray[np.float64]) -> list[Row]:
        """The rows that `values` of the variables violate."""
        if not self.lower:
            return []
        columns, entries = np.array(self.columns, dtype=np.intp), np.array(self.values)
        sums = np.add.reduceat(entries * values[columns], self.starts[:-1])
        lower, upper = np.array(self.lower) - VIOLATION, np.array(self.upper) + VIOLATION
        places = np.flatnonzero((sums < lower) | (sums > upper)).tolist()
        return [self._row(place) for place in places]

    def _row(self, place: int) -> Row:
        span = slice(*self.starts[place : place + 2])
        entries = dict(zip(self.columns[span], self.values[span], strict=True))
        return Row(entries, self.lower[place], self.upper[place])


def rows_of(problem: Problem, pruned: Pruned) -> Rows:
    """All rows except those of barriers."""
    numbers = [number for options in pruned.options.values() for number in options]
    rows = Rows(numbers)
    column = rows.column
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
                produced = {column[n]: 1.0 for n in pruned.options[needed]}
                rows.add(Row(produced | dict.fromkeys(using, -1.0), 0.0, math.inf))
    return rows
