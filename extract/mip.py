"""The choice problem as a mixed-integer program, for HiGHS: the only door to the solver.

One 0/1 variable for each candidate; a class is made if one of its candidates is taken.

* ``Σ x = 1`` for a class that every solution needs, ``Σ x <= 1`` for any other.
* An edge from a class to an input: all candidates of the class that need the input, in one
  row, ``Σ x <= `` (is the input made); this is tighter than a row for each candidate.
* Inside a strongly connected component a place in the order for each class, and
  ``place(c) - place(d) >= 1`` for each candidate of ``c`` that is taken and needs ``d``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from relax_egraph.extract.problem import Problem, Solution, in_order
from relax_egraph.extract.prune import Pruned

_TOTAL = 1e4
"""What costs are scaled to, in total: far above the solver's tolerances."""

_RELATIVE_GAP = 1e-9
_ABSOLUTE_GAP = 1e-6


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the solver found: perhaps a solution, perhaps a bound.

    `stopped` is empty if it searched to the end, else says what happened.
    """

    solution: Solution | None
    bound: float | None
    stopped: str = ""


TIME_LIMIT = "time limit"
"""What stopped the solver, if it was that."""


@dataclass(slots=True)
class _Rows:
    """Constraint rows in compressed form."""

    starts: list[int] = field(default_factory=lambda: [0])
    columns: list[int] = field(default_factory=list[int])
    values: list[float] = field(default_factory=list[float])
    lower: list[float] = field(default_factory=list[float])
    upper: list[float] = field(default_factory=list[float])

    def add(self, entries: Mapping[int, float], lower: float, upper: float) -> None:
        self.columns.extend(entries)
        self.values.extend(entries.values())
        self.starts.append(len(self.columns))
        self.lower.append(lower)
        self.upper.append(upper)


@dataclass(frozen=True, slots=True)
class _Columns:
    """The number of the variable of each candidate, and of each class in a cycle."""

    taken: Mapping[int, int]
    place: Mapping[int, int]

    def __len__(self) -> int:
        return len(self.taken) + len(self.place)


def solve(
    problem: Problem, pruned: Pruned, start: Solution, cost: float, time_limit: float
) -> Outcome:
    """Search for a better solution than `start`, which costs `cost`, for `time_limit` seconds."""
    try:
        import highspy
    except ImportError:
        return Outcome(None, None, "the solver is not installed")
    columns = _columns(pruned)
    rows = _rows(problem, pruned, columns)
    scale = _TOTAL / cost if cost > 0 else 1.0

    lp = highspy.HighsLp()
    lp.num_col_ = len(columns)
    lp.num_row_ = len(rows.lower)
    costs = np.zeros(len(columns))
    lower = np.zeros(len(columns))
    upper = np.ones(len(columns))
    for number, column in columns.taken.items():
        costs[column] = problem.candidates[number].cost * scale
    for c in pruned.needed:
        if len(pruned.options[c]) == 1:
            lower[columns.taken[pruned.options[c][0]]] = 1.0
    for c, column in columns.place.items():
        upper[column] = pruned.size[pruned.component[c]] - 1
    lp.col_cost_ = costs
    lp.col_lower_ = lower
    lp.col_upper_ = upper
    lp.row_lower_ = np.array(rows.lower)
    lp.row_upper_ = np.array(rows.upper)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.array(rows.starts, dtype=np.int32)
    lp.a_matrix_.index_ = np.array(rows.columns, dtype=np.int32)
    lp.a_matrix_.value_ = np.array(rows.values)
    lp.integrality_ = [highspy.HighsVarType.kInteger] * len(columns.taken) + [
        highspy.HighsVarType.kContinuous
    ] * len(columns.place)

    solver = highspy.Highs()
    options: Mapping[str, bool | float | str] = {
        "output_flag": False,
        "parallel": "off",
        "time_limit": time_limit,
        "mip_rel_gap": _RELATIVE_GAP,
        "mip_abs_gap": _ABSOLUTE_GAP,
    }
    for name, value in options.items():
        solver.setOptionValue(name, value)
    given = highspy.HighsSolution()
    given.col_value = _values(problem, pruned, columns, start)
    try:
        solver.passModel(lp)
        solver.setSolution(given)
        solver.run()
    except RuntimeError as error:
        return Outcome(None, None, f"the solver failed: {error}")

    status = solver.getModelStatus()
    in_time = status == highspy.HighsModelStatus.kOptimal
    if not in_time and status != highspy.HighsModelStatus.kTimeLimit:
        return Outcome(None, None, f"the solver failed: {solver.modelStatusToString(status)}")
    values = solver.getSolution().col_value
    bound = solver.getInfo().mip_dual_bound
    return Outcome(
        _solution(problem, columns, values) if values else None,
        bound / scale if np.isfinite(bound) else None,
        "" if in_time else TIME_LIMIT,
    )


def _columns(pruned: Pruned) -> _Columns:
    numbers = [number for options in pruned.options.values() for number in options]
    taken = {number: column for column, number in enumerate(numbers)}
    cyclic = [c for c in pruned.options if pruned.size[pruned.component[c]] > 1]
    return _Columns(taken, {c: len(taken) + k for k, c in enumerate(cyclic)})


def _rows(problem: Problem, pruned: Pruned, columns: _Columns) -> _Rows:
    rows = _Rows()
    for c, options in pruned.options.items():
        if c in pruned.needed:
            rows.add({columns.taken[n]: 1.0 for n in options}, 1.0, 1.0)
        elif len(options) > 1:
            rows.add({columns.taken[n]: 1.0 for n in options}, 0.0, 1.0)
        users: dict[int, list[int]] = {}
        for number in options:
            for needed in problem.candidates[number].inputs:
                users.setdefault(needed, []).append(columns.taken[number])
        for needed, using in users.items():
            if needed not in pruned.needed:
                made = {columns.taken[n]: 1.0 for n in pruned.options[needed]}
                rows.add(made | dict.fromkeys(using, -1.0), 0.0, np.inf)
            if pruned.in_cycle(c, needed):
                size = float(pruned.size[pruned.component[c]])
                places = {columns.place[c]: 1.0, columns.place[needed]: -1.0}
                rows.add(places | dict.fromkeys(using, -size), 1.0 - size, np.inf)
    return rows


def _values(problem: Problem, pruned: Pruned, columns: _Columns, start: Solution) -> list[float]:
    """The variables at the solution `start`."""
    values = [0.0] * len(columns)
    placed: dict[int, int] = {}
    for number in in_order(problem, start) or ():
        c = problem.candidates[number].output
        values[columns.taken[number]] = 1.0
        component = pruned.component[c]
        if c in columns.place:
            values[columns.place[c]] = float(placed.get(component, 0))
            placed[component] = placed.get(component, 0) + 1
    return values


def _solution(problem: Problem, columns: _Columns, values: list[float]) -> Solution:
    return {
        problem.candidates[number].output: number
        for number, column in columns.taken.items()
        if values[column] > 0.5
    }
