"""What the machine can do, measured beside a workload: runs that each do a known amount."""

from collections.abc import Callable, Mapping
from functools import partial

from bench.program import Array
from bench.system import empty
from bench.timing import Run, in_turn
from bench.workloads import Limit, Task
from relax_egraph.lower.emit.target import host
from relax_egraph.lower.runtime.limits import ACCUMULATORS, UNROLLED, flops_per_turn, limit_kernels

FLOPS = 2e8
"""Operations of one run of multiply-adds: long enough that the call is not seen."""

Measure = tuple[Run, float]
"""A run, and how many operations it does or bytes it moves."""


def limits_of(task: Task) -> Mapping[str, Measure]:
    """The runs of what bounds `task`, by name; as many bytes as it moves itself."""
    return _MEASURES[task.limit](task)


def _arithmetic(task: Task) -> Mapping[str, Measure]:
    out = _floats(ACCUMULATORS * host().lanes())
    turns = round(FLOPS / flops_per_turn())
    run = partial(limit_kernels()["multiply_add"], out, turns)
    return {"multiply-adds": (run, float(turns * flops_per_turn()))}


def _copy(task: Task) -> Mapping[str, Measure]:
    count = round(task.amount / 8)
    x, y = _floats(count), _floats(count)
    kernels = {"copy": "copy", "copy past caches": "copy_past_caches"}
    return {
        name: (partial(limit_kernels()[kernel], x, y, count), 8.0 * count)
        for name, kernel in kernels.items()
    }


def _read(task: Task) -> Mapping[str, Measure]:
    """Reading as many bytes, from as many places in turn as the workload has weights."""
    count = round(task.amount / 4)
    out = _floats(UNROLLED * host().lanes())
    read = limit_kernels()["read"]
    runs = [partial(read, _floats(count), out, count) for _ in task.modules]
    return {"read": (in_turn(runs), 4.0 * count)}


_MEASURES: Mapping[Limit, Callable[[Task], Mapping[str, Measure]]] = {
    "arithmetic": _arithmetic,
    "copy": _copy,
    "read": _read,
}


def _floats(count: int) -> Array:
    array = empty(count)
    array[:] = 1
    return array
