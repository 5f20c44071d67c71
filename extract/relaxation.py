"""The bound and the reduced costs of a linear relaxation.

Any multipliers of the rows prove a bound by a few sums (weak duality), so the solver that found the
multipliers need not be trusted.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from relax_egraph.extract.problem import Problem
from relax_egraph.extract.rows import Rows


@dataclass(frozen=True, slots=True)
class Relaxation:
    """No solution costs less than `bound`; none with candidate n less than ``bound + extra[n]``.

    `taken` is the share of each candidate in the cheapest fractional solution of `rows`.
    """

    rows: Rows
    taken: Mapping[int, float]
    bound: float
    extra: Mapping[int, float]

    def open(self, cost: float) -> list[int]:
        """The candidates that a solution of at most `cost` may take."""
        return [number for number, more in self.extra.items() if self.bound + more <= cost]


def relaxation_at(
    problem: Problem,
    rows: Rows,
    taken: Mapping[int, float],
    multipliers: npt.NDArray[np.float64],
) -> Relaxation:
    """The relaxation that `multipliers`, one per row, prove; those of unbounded sides count as 0.

    For ``0 <= x <= 1`` and ``lower <= A x <= upper``, and any ``y``:
    ``c x >= Σ min(0, c - y A) + Σ max(0, y) lower - Σ max(0, -y) upper``.
    """
    lower, upper = np.array(rows.lower), np.array(rows.upper)
    rising = np.where(np.isfinite(lower), np.maximum(multipliers, 0.0), 0.0)
    falling = np.where(np.isfinite(upper), np.maximum(-multipliers, 0.0), 0.0)
    sides = np.where(rising > 0, lower, 0.0) @ rising - np.where(falling > 0, upper, 0.0) @ falling
    counts = np.diff(np.array(rows.starts))
    weights = np.repeat(rising - falling, counts) * np.array(rows.values)
    columns = np.array(rows.columns, dtype=np.intp)
    priced = np.bincount(columns, weights, minlength=len(rows.numbers))
    left = np.array([problem.candidates[n].cost for n in rows.numbers]) - priced
    bound = float(sides + np.minimum(left, 0.0).sum())
    extra = np.maximum(left, 0.0).tolist()
    return Relaxation(rows, taken, bound, dict(zip(rows.numbers, extra, strict=True)))
