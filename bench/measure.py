"""The measurement of one workload on all systems: outputs are checked, then times in turns."""

import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from statistics import median

import numpy as np

from bench import ours, peers
from bench.contention import busy_core
from bench.corners import corners
from bench.limits import limits_of
from bench.networks import networks
from bench.program import Array, NotRunnable, program_of
from bench.reference import error_of, exact
from bench.result import ONE_THREAD, OURS, UNOPTIMIZED, Result
from bench.system import Bind, Bound
from bench.timing import Run, in_turn, least, samples
from bench.work import least_bytes
from bench.workloads import Ratio, Task, Workload, workloads
from relax_egraph.ir.module import IRModule
from relax_egraph.lower.jit.processors import processor
from relax_egraph.vm.call_report import CallSum

UNITS: Mapping[bool, frozenset[Ratio]] = {
    False: frozenset({"peer", "limit", "unoptimized"}),
    True: frozenset({"two threads", "contended", "peer on two threads"}),
}
"""The seconds of measurement on one thread, and on more."""

PATIENCE = 4
"""The factor of measurement time for several threads, whose cores are seldom free together."""

TOLERANCE = 1e-5
"""The largest accepted error, relative to the largest magnitude of the result."""


def measure(
    name: str, models: Path | None, threads: int, seconds: float, target: str = ours.NATIVE
) -> Result:
    """Measure one workload for about `seconds` on each system; ours is compiled for `target`.

    A peer that does not support it, fails, or has a wrong result is left out; if it is one of our
    own systems, raises `NotRunnable`.
    """
    workload = known(models)[name]
    task = workload.make()
    expected = [exact(module, task.inputs) for module in task.modules]
    runs: dict[str, Run] = {}
    errors: dict[str, float] = {}
    left_out: dict[str, str] = {}
    kernels: list[CallSum] = []
    own = [OURS, *[ONE_THREAD] * (threads > 1), *[UNOPTIMIZED] * ("unoptimized" in workload.wanted)]
    for system in (*own, *peers.installed()):
        try:
            bound, errors[system] = _checked(system, task, expected, threads, target)
            runs[system] = in_turn([b.run for b in bound])
            if system == OURS and (profile := bound[0].profile):
                kernels = [s for s in profile().sums() if s.kind != "builtin"]
        except NotRunnable as reason:
            if system in own:
                raise NotRunnable(f"{name}: {system}: {reason}") from None
            left_out[system] = str(reason)
        except Exception as failure:  # each peer has exceptions of its own
            if system in own:
                raise
            first, *_ = (*str(failure).splitlines(), "")
            left_out[system] = f"{type(failure).__name__}: {first}"
    limits = limits_of(task, processor(target)) if threads == 1 else {}
    loops = {loop: run for loop, (run, _) in limits.items()}
    patience, clock = (1, None) if threads == 1 else (PATIENCE, time.perf_counter)
    times = least(runs | loops, patience * seconds, clock)
    return Result(
        name=name,
        threads=threads,
        limit=task.limit,
        amount=task.amount,
        wanted={unit: r for unit, r in workload.wanted.items() if unit in UNITS[threads > 1]},
        seconds={system: times[system] for system in runs},
        rates={loop: amount / times[loop] for loop, (_, amount) in limits.items()},
        errors=errors,
        left_out=left_out,
        contended=_contended(runs, seconds)
        if threads > 1 and "contended" in workload.wanted
        else {},
        nbytes=least_bytes(program_of(task.modules[0]), task.inputs),
        kernels=tuple(kernels),
    )


def known(models: Path | None) -> dict[str, Workload]:
    """The workloads, by name."""
    return workloads(models) | corners() | networks()


def _checked(
    system: str, task: Task, expected: Sequence[Array], threads: int, target: str
) -> tuple[list[Bound], float]:
    """The compiled modules of `task` and their error; raises `NotRunnable` if it is too large."""
    bound = [_compiled(system, module, threads, target)(task.inputs) for module in task.modules]
    error = max(error_of(b.result(), e) for b, e in zip(bound, expected, strict=True))
    if not error < TOLERANCE:
        raise NotRunnable(f"its error is {error:.1e}")
    if error and all(np.issubdtype(x.dtype, np.integer) for x in task.inputs):
        raise NotRunnable("its integers are not exact")
    return bound, error


@lru_cache(maxsize=16)
def _compiled(system: str, module: IRModule, threads: int, target: str) -> Bind:
    """A compiled module, cached for the next workload."""
    if system == ONE_THREAD:
        return ours.optimized(module, 1, target)
    compilers = {OURS: ours.optimized, UNOPTIMIZED: ours.as_written}
    if (own := compilers.get(system)) is not None:
        return own(module, threads, target)
    return peers.peer(system)(module, threads)


def _contended(runs: Mapping[str, Run], seconds: float) -> dict[str, float]:
    """The medians of our own runs while another process keeps a core busy."""
    own = {system: runs[system] for system in (OURS, ONE_THREAD)}
    with busy_core():
        return {k: median(v) for k, v in samples(own, seconds, time.perf_counter).items()}
