"""The selection problem as a linear and as a mixed-integer program; the only door to HiGHS.

Cycle constraints are added lazily: to the linear program while its solution violates some, and to
the mixed-integer program whenever its solution has a cycle.
"""

import math
import os
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from relax_egraph.base.forks import is_inherited
from relax_egraph.extract.cycles import row_around, violated_cycles
from relax_egraph.extract.problem import Problem, Solution, in_order
from relax_egraph.extract.prune import Pruned
from relax_egraph.extract.relaxation import Relaxation, relaxation_at
from relax_egraph.extract.rows import Row, Rows, rows_of

_TOTAL = 1e4
"""The total that costs are scaled to: far above the solver's tolerances."""

_OPTIONS: Mapping[str, bool | float | str] = {
    "output_flag": False,
    "parallel": "off",
    "mip_rel_gap": 1e-9,
    "mip_abs_gap": 1e-6,
}

_GAIN = 1e-3 * _TOTAL
"""The improvement of the bound that justifies another round of cycle constraints."""

TIME_LIMIT = "time limit"
"""The reason of a result that is not proven optimal for lack of time."""


class SolverError(Exception):
    """The solver is missing or failed; the message says which."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The solver's result: a solution if it has one, maybe cyclic, and a bound if it has one.

    `stopped` is empty if the search was exhaustive, else the reason why it ended.
    """

    solution: Solution | None
    bound: float | None
    stopped: str = ""


def relax(problem: Problem, pruned: Pruned, cost: float, time_limit: float) -> Relaxation:
    """The linear relaxation with violated cycle constraints added; some solution costs `cost`.

    Raises `SolverError` if the solver has no result.
    """
    rows = rows_of(problem, pruned)
    column = {number: place for place, number in enumerate(rows.numbers)}
    end = time.perf_counter() + time_limit
    taken: Mapping[int, float] = {}
    multipliers = np.zeros(0)
    with _solver_errors():
        solver, scale = _new_solver(problem, rows, cost)
        last, gained = -math.inf, math.inf
        while gained >= _GAIN and _run(solver, end):
            optimum, value = solver.getSolution(), solver.getObjectiveValue()
            last, gained = value, value - last
            taken = dict(zip(rows.numbers, optimum.col_value, strict=True))
            multipliers = np.array(optimum.row_dual) / scale
            violated = violated_cycles(problem, pruned, taken)
            for cycle in violated:
                _add(solver, rows, row_around(problem, pruned, cycle, column))
            if not violated:
                break
    if not taken:
        raise SolverError(TIME_LIMIT)
    late = np.zeros(len(rows.lower) - len(multipliers))
    return relaxation_at(problem, rows, taken, np.concatenate([multipliers, late]))


def solve(
    problem: Problem, pruned: Pruned, rows: Rows, start: Solution, cost: float, time_limit: float
) -> Outcome:
    """Search for a better solution than `start`, which costs `cost`, for `time_limit` seconds.

    Cycle constraints are added to `rows`.  Raises `SolverError` if the solver has no result.
    """
    column = {number: place for place, number in enumerate(rows.numbers)}
    end = time.perf_counter() + time_limit
    bound: float | None = None
    with _solver_errors():
        import highspy

        solver, scale = _new_solver(problem, rows, cost)
        for place in range(len(rows.numbers)):
            solver.changeColIntegrality(place, highspy.HighsVarType.kInteger)
        warm_start = highspy.HighsSolution()
        chosen = set(start.values())
        warm_start.col_value = [float(number in chosen) for number in rows.numbers]
        while True:
            solver.setSolution(warm_start)
            finished = _run(solver, end)
            proven = solver.getInfo().mip_dual_bound
            if math.isfinite(proven):
                bound = max(bound or 0.0, proven / scale)
            values = solver.getSolution().col_value
            taken = dict(zip(rows.numbers, values, strict=True)) if values else {}
            solution = {problem.candidates[n].output: n for n, x in taken.items() if x > 0.5}
            if finished and in_order(problem, solution) is not None:
                return Outcome(solution, bound)
            if not finished or time.perf_counter() > end:
                return Outcome(solution or None, bound, TIME_LIMIT)
            violated = violated_cycles(problem, pruned, taken)
            if not violated:
                raise SolverError("the solver's result violates a constraint")
            for cycle in violated:
                _add(solver, rows, row_around(problem, pruned, cycle, column))


@contextmanager
def _solver_errors() -> Generator[None]:
    """Translate exceptions of the solver to `SolverError`."""
    try:
        yield
    except ImportError:
        raise SolverError("the solver is not installed") from None
    except RuntimeError as error:
        raise SolverError(f"the solver failed: {error}") from None


def _new_solver(problem: Problem, rows: Rows, cost: float) -> tuple[Any, float]:
    """A solver with the rows loaded, and the factor that costs are scaled by."""
    import highspy

    scale = _TOTAL / cost if cost > 0 else 1.0
    lp = highspy.HighsLp()
    lp.num_col_ = len(rows.numbers)
    lp.num_row_ = len(rows.lower)
    lp.col_cost_ = np.array([problem.candidates[n].cost * scale for n in rows.numbers])
    lp.col_lower_ = np.zeros(len(rows.numbers))
    lp.col_upper_ = np.ones(len(rows.numbers))
    lp.row_lower_ = np.array(rows.lower)
    lp.row_upper_ = np.array(rows.upper)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.array(rows.starts, dtype=np.int32)
    lp.a_matrix_.index_ = np.array(rows.columns, dtype=np.int32)
    lp.a_matrix_.value_ = np.array(rows.values)
    solver = highspy.Highs()
    for name, value in _OPTIONS.items():
        solver.setOptionValue(name, value)
    solver.passModel(lp)
    return solver, scale


def _run(solver: Any, end: float) -> bool:
    """Run until `end`; whether the optimum was found.  The solver's own clock counts."""
    import highspy

    left = max(0.0, end - time.perf_counter())
    solver.setOptionValue("time_limit", solver.getRunTime() + left)
    solver.run()
    status = solver.getModelStatus()
    if status not in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kTimeLimit):
        raise SolverError(f"the solver failed: {solver.modelStatusToString(status)}")
    return status == highspy.HighsModelStatus.kOptimal


def _add(solver: Any, rows: Rows, row: Row) -> None:
    rows.add(row)
    columns = np.array(list(row.entries), dtype=np.int32)
    values = np.array(list(row.entries.values()))
    solver.addRow(row.lower, row.upper, len(columns), columns, values)


def _reset_threads() -> None:
    """In a child of ``fork``: the solver's threads do not exist, and it would wait for them."""
    if highspy := sys.modules.get("highspy"):
        with suppress(RuntimeError):  # it drops the threads, then reports that it cannot join them
            highspy.Highs.resetGlobalScheduler(False)


if is_inherited("highspy"):
    _reset_threads()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_threads)
