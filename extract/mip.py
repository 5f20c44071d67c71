"""The selection problem as a linear and as a mixed-integer program; the only door to HiGHS.

Barriers are added lazily: to the linear program while its solution violates some, and to the
mixed-integer program whenever its solution has a cycle.
"""

import math
import os
import sys
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from relax_egraph.base.forks import is_inherited
from relax_egraph.extract.barriers import Barrier, row_at
from relax_egraph.extract.problem import Problem, Solution, in_order
from relax_egraph.extract.prune import Pruned
from relax_egraph.extract.relaxation import Relaxation, relaxation_at
from relax_egraph.extract.rows import Row, Rows, rows_of
from relax_egraph.extract.separation import violated_barriers

_TOTAL = 1e4
"""The total that costs are scaled to: far above the solver's tolerances."""

_OPTIONS: Mapping[str, bool | float | str] = {
    "output_flag": False,
    "parallel": "off",
    "mip_abs_gap": 1e-6,
}

_TOLERANCE = 1e-9
"""The least gap that the solver is asked for."""

_ROUNDS = 5
"""How many rounds of barriers are judged by what they gain."""

_GAIN = 1 / 20
"""The part of the gap that so many rounds have to close; else there are no more of them."""

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


def relaxations(
    problem: Problem,
    pruned: Pruned,
    barriers: Iterable[Barrier],
    cost: float,
    time_limit: float,
) -> Iterator[Relaxation]:
    """Linear relaxations, each with more violated barriers; some solution costs `cost`.

    `barriers` are tried before others are searched for.  They end when no barrier is violated, or
    when the bound hardly rises.  Raises `SolverError` if the solver has no result.
    """
    rows = rows_of(problem, pruned)
    column = rows.column
    known = Rows(rows.numbers)
    for barrier in barriers:
        known.add(row_at(problem, pruned, barrier, column))
    end = time.thread_time() + time_limit
    with _solver_errors():
        solver, scale = _new_solver(problem, rows, cost)
        values: list[float] = []
        while _is_gaining(values):
            if not _run(solver, end):
                raise SolverError(TIME_LIMIT)
            optimum = solver.getSolution()
            values.append(solver.getObjectiveValue())
            taken = dict(zip(rows.numbers, optimum.col_value, strict=True))
            yield relaxation_at(problem, rows, taken, np.array(optimum.row_dual) / scale)
            violated = known.violated(np.array(optimum.col_value)) or [
                row_at(problem, pruned, barrier, column)
                for barrier in violated_barriers(problem, pruned, taken)
            ]
            for row in violated:
                _add(solver, rows, row)
            if not violated:
                break


def _is_gaining(values: list[float]) -> bool:
    """Whether the last bounds, in the solver's units, justify another round."""
    if len(values) <= _ROUNDS:
        return True
    before, now = values[-1 - _ROUNDS], values[-1]
    return now - before >= _GAIN * (_TOTAL - before)


def solve(
    problem: Problem,
    pruned: Pruned,
    rows: Rows,
    start: Solution,
    cost: float,
    time_limit: float,
    gap: float,
) -> Outcome:
    """Search for a better solution than `start`, which costs `cost`, for `time_limit` seconds.

    The search ends at a solution that is proven to cost at most the share `gap` too much.  Barriers
    are added to `rows`.  Raises `SolverError` if the solver has no result.
    """
    column = rows.column
    end = time.thread_time() + time_limit
    bound: float | None = None
    with _solver_errors():
        import highspy

        solver, scale = _new_solver(problem, rows, cost)
        solver.setOptionValue("mip_rel_gap", max(gap, _TOLERANCE))
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
            if not finished or time.thread_time() > end:
                return Outcome(solution or None, bound, TIME_LIMIT)
            violated = list(violated_barriers(problem, pruned, taken))
            if not violated:
                raise SolverError("the solver's result violates a constraint")
            for barrier in violated:
                _add(solver, rows, row_at(problem, pruned, barrier, column))


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
    """Run until `end` of processor time; whether the optimum was found."""
    import highspy

    left = max(0.0, end - time.thread_time())
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
