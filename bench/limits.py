"""The limits of the machine, measured beside a workload by runs of a known amount."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from bench.program import Array
from bench.system import empty
from bench.timing import Run, in_turn, least
from bench.workloads import Limit, Task
from relax_egraph.lower.emit.target import Target, host
from relax_egraph.lower.runtime.limits import ACCUMULATORS, UNROLLED, flops_per_turn, limit_kernels

FLOPS = 2e8
"""The operations of one run of multiply-adds: enough that the call is negligible."""

Measure = tuple[Run, float]
"""A run, and its operations or bytes."""


def limits_of(task: Task, target: Target | None = None) -> Mapping[str, Measure]:
    """The runs for the limits of `task`, by name, with as many bytes as the task moves.

    They use the vectors of `target`, by default this processor.
    """
    return _MEASURES[task.limit](task, target or host())


def _arithmetic(task: Task, target: Target) -> Mapping[str, Measure]:
    return {"multiply-adds": _multiply_adds(target)}


def _copy(task: Task, target: Target) -> Mapping[str, Measure]:
    count = round(task.amount / 8)
    kernels = {"copy": "copy", "copy past caches": "copy_past_caches"}
    return {name: _copying(kernel, count, target) for name, kernel in kernels.items()}


def _read(task: Task, target: Target) -> Mapping[str, Measure]:
    """Reading as many bytes, from as many places in turn as the workload has weights."""
    return {"read": _reading(round(task.amount / 4), len(task.modules), target)}


def _multiply_adds(target: Target) -> Measure:
    out = _floats(ACCUMULATORS * target.lanes())
    turns = round(FLOPS / flops_per_turn(target))
    run = partial(limit_kernels(target)["multiply_add"], out, turns)
    return run, float(turns * flops_per_turn(target))


def _copying(kernel: str, count: int, target: Target) -> Measure:
    run = partial(limit_kernels(target)[kernel], _floats(count), _floats(count), count)
    return run, 8.0 * count


def _reading(count: int, places: int, target: Target) -> Measure:
    out = _floats(UNROLLED * target.lanes())
    read = limit_kernels(target)["read"]
    return in_turn([partial(read, _floats(count), out, count) for _ in range(places)]), 4.0 * count


@dataclass(frozen=True, slots=True)
class Roof:
    """A limit of the machine per second: operations if it `is_level`, else bytes."""

    name: str
    rate: float
    is_level: bool


MEMORY, CACHE = 1 << 28, 1 << 19
"""Bytes beyond all caches, and bytes that fit the second-level cache."""


def roofs(seconds: float, target: Target) -> list[Roof]:
    """The limits of one core with the vectors of `target`, each measured for about `seconds`."""
    measures: dict[str, Measure] = {
        "multiply-adds": _multiply_adds(target),
        "read, memory": _reading(MEMORY // 4, 1, target),
        "copy, memory": _copying("copy", MEMORY // 8, target),
        "copy past caches, memory": _copying("copy_past_caches", MEMORY // 8, target),
        "read, second cache": _reading(CACHE // 4, 1, target),
    }
    times = least({name: run for name, (run, _) in measures.items()}, seconds)
    return [
        Roof(name, amount / times[name], name == "multiply-adds")
        for name, (_, amount) in measures.items()
    ]


_MEASURES: Mapping[Limit, Callable[[Task, Target], Mapping[str, Measure]]] = {
    "arithmetic": _arithmetic,
    "copy": _copy,
    "read": _read,
}


def _floats(count: int) -> Array:
    array = empty(count)
    array[:] = 1
    return array
