"""``python -m bench``: times beside numpy's, interleaved in one run, one thread each.

Times are the least CPU time of the calling thread over the rounds, so that what else the machine
does is left out.  Outputs are compared with a float64 computation before anything is timed.
"""

import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from tempfile import TemporaryDirectory

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # numpy, like us, on one thread; read when it loads

import numpy as np
from rich.table import Table

import relax_egraph as rx
from bench.encoders import encoders_tables
from bench.language import language_table
from bench.output import console
from bench.workloads import Workload, workloads
from examples.digits.model import Digits, build_model

SECONDS_PER_WORKLOAD = 1.0
TOLERANCE = 2e-5
"""Largest error, relative to the largest magnitude of the result, that passes the check."""


def interleaved(runs: Sequence[Callable[[], object]], seconds: float) -> list[float]:
    """The least thread CPU time of each run, called in turns for `seconds`."""
    least = [float("inf")] * len(runs)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for i, run in enumerate(runs):
            start = time.thread_time()
            run()
            least[i] = min(least[i], time.thread_time() - start)
    return least


def error_of(workload: Workload, result: np.ndarray) -> float:
    """The largest error against float64, relative to the largest magnitude."""
    exact = workload.peer(*(x.astype(np.float64) for x in workload.inputs))
    return float(np.abs(result - exact).max() / np.abs(exact).max())


def kernels_table() -> Table:
    """Each workload, ours beside numpy's."""
    table = Table("workload", "relax-egraph", "numpy", "numpy / ours", "error")
    for workload in workloads():
        main = rx.VirtualMachine(rx.build(rx.optimize(workload.module)))["main"]
        error = error_of(workload, main(*workload.inputs))
        if not error < TOLERANCE:
            raise SystemExit(f"{workload.name}: error {error:.1e} is above {TOLERANCE:.0e}")
        runs = [partial(f, *workload.inputs) for f in (main, workload.peer)]
        ours, theirs = interleaved(runs, SECONDS_PER_WORKLOAD)
        cells = (f"{ours * 1e6:.1f} µs", f"{theirs * 1e6:.1f} µs", f"{theirs / ours:.2f}")
        table.add_row(workload.name, *cells, f"{error:.1e}")
    return table


def compile_table() -> Table:
    """The compiler's own time on the digit classifier: the first call, and later ones."""
    table = Table("digits", "first call", "worst of 5 later calls", "best")
    module = build_model(Digits.load().weights)
    optimize = [_wall(partial(rx.optimize, module)) for _ in range(6)]
    best = rx.optimize(module)
    build = [_wall(partial(rx.build, best)) for _ in range(6)]
    for name, (first, *later) in (("optimize", optimize), ("build", build)):
        cells = (f"{seconds * 1e3:.0f} ms" for seconds in (first, max(later), min(later)))
        table.add_row(name, *cells)
    return table


def _wall(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def main() -> None:
    """Print all tables, of an object cache that begins empty."""
    out = console()
    out.print(language_table())
    out.print(encoders_tables())
    with TemporaryDirectory() as cache:
        os.environ["RELAX_EGRAPH_CACHE"] = cache
        out.print(compile_table())
        out.print(kernels_table())


if __name__ == "__main__":
    main()
