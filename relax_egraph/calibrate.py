"""Measure this machine: what it can do, and what a kernel of this compiler costs to launch.

    profile = calibrate()                  # takes some seconds, on one core
    best = rx.optimize(module, profile=profile)

Rates are those of loops that do nothing else; which share of them kernels reach, ``Schedule``
says.
"""

import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from relax_egraph import ir
from relax_egraph.base.parameters import NOT_NEGATIVE, takes
from relax_egraph.build import build
from relax_egraph.errors import ExtractionError
from relax_egraph.extract import Level, Profile
from relax_egraph.lower.emit.target import host
from relax_egraph.lower.jit.object_cache import default_folder
from relax_egraph.lower.runtime.limits import ACCUMULATORS, flops_per_turn, limit_kernels
from relax_egraph.tir import te
from relax_egraph.tir.block_builder import BlockBuilder
from relax_egraph.vm.machine import VirtualMachine
from relax_egraph.vm.storage import aligned_bytes

_CHAIN = 64
"""Kernels on one element, each of which reads what the one before it wrote."""

_ELEMENTS, _APART, _TERMS = 1 << 15, 16, 8
"""Elements of one tensor, and for each of them independent polynomials, and their terms: the former
hide the latency of an operation."""

_SIZES = tuple(1 << k for k in range(18, 28))
"""Bytes that a copy moves: from what a cache of one core holds, to what none does."""

_COPIES = ("copy", "copy_past_caches")

_TURNS = 1 << 18
"""Turns of the loop of multiply-adds: about a quarter of a millisecond."""

_SLOWER = 0.7
"""At this share of a level's bandwidth the next level begins."""

_TURN = 3
_DTYPES = ("float32", "float64", "int8", "uint8", "int16", "int32", "int64")


@takes(seconds=NOT_NEGATIVE)
def calibrate(seconds: float = 15.0) -> Profile:
    """Measure for about so many `seconds`; more make the figures of a busy machine steadier.

    Each figure is the best of all tries: other programs only ever make it worse.
    """
    runs: dict[object, Callable[[], object]] = {"chain": _chain_of_kernels(), "peak": _peak()}
    runs |= {("map", dtype): _arithmetic(dtype) for dtype in _DTYPES}
    runs |= {(size, kernel): _moving(size, kernel) for size in _SIZES for kernel in _COPIES}
    best = _best_of(runs, seconds)
    launch = best["chain"] / _CHAIN
    flops = _TURNS * flops_per_turn() / best["peak"]
    mapping = {dtype: best["map", dtype] - launch for dtype in _DTYPES}
    peak = {dtype: flops * mapping["float32"] / mapping[dtype] for dtype in _DTYPES}
    copies = {size: min(best[size, kernel] for kernel in _COPIES) for size in _SIZES}
    moving = {size: copies[size] / _repeats(size) for size in _SIZES}
    return Profile(
        name=host().cpu,
        launch=launch,
        peak={**peak, "bool": peak["uint8"]},
        levels=tuple(_levels(moving)),
    )


def profile_file() -> Path | None:
    """Where the profile of this machine is kept; ``None`` if nothing is kept on disk."""
    folder = default_folder()
    return folder and folder / "profile.json"


def calibrated() -> Profile:
    """The profile of this machine that ``relax-egraph calibrate`` saved.

    Raises `ExtractionError` if there is none.
    """
    file = profile_file()
    if file is None or not file.exists():
        raise ExtractionError("this machine has no profile: run relax-egraph calibrate")
    return Profile.read(file)


def _best_of(runs: dict[object, Callable[[], object]], seconds: float) -> dict[Any, float]:
    """The least seconds of each run, which take turns of a few: the first finds caches cold."""
    best = dict.fromkeys(runs, math.inf)
    end = time.perf_counter() + seconds
    tries = 0
    while tries < 3 or time.perf_counter() < end:
        for name, run in runs.items():
            for _ in range(_TURN):
                begin = time.perf_counter()
                run()
                best[name] = min(best[name], time.perf_counter() - begin)
        tries += 1
    return best


def _levels(moving: dict[int, float]) -> Iterator[Level]:
    """Levels of memory, from the seconds that it takes to move so many bytes.

    A level ends where moving twice as much takes clearly longer for the second half.
    """
    sizes = sorted(moving)
    bandwidth = max(size / moving[size] for size in sizes[:2])
    held, spent = sizes[0], moving[sizes[0]]
    for size in sizes[1:]:
        more = (size - held) / max(moving[size] - spent, 1e-9)
        if more < _SLOWER * bandwidth:
            yield Level(float(held), bandwidth)
            bandwidth = more
        held, spent = size, moving[size]
    yield Level(math.inf, bandwidth)


def _chain_of_kernels() -> Callable[[], object]:
    bb = BlockBuilder()
    x = ir.Var("x", ir.tensor((1,), "float32"))
    with bb.function("main", [x]), bb.dataflow():
        value: ir.Var = x
        for _ in range(_CHAIN):
            value = bb.emit(ir.call("exp", value))
        out = bb.emit_output(value)
        bb.emit_func_output(out)
    return _runner(bb.get(), np.zeros(1, "float32"))


def _peak() -> Callable[[], object]:
    out = np.zeros(ACCUMULATORS * host().lanes(), "float32")
    return partial(limit_kernels()["multiply_add"], out, _TURNS)


def _arithmetic(dtype: str) -> Callable[[], object]:
    """Multiply-adds on the elements of what fits the first cache."""

    def polynomials(x: te.Tensor) -> te.Tensor:
        def value(i: Any) -> Any:
            values = [x[i] + k for k in range(_APART)]
            for _ in range(_TERMS):
                values = [v * x[i] + k for k, v in enumerate(values)]
            return sum(values[1:], start=values[0])

        return te.compute(x.shape, value)

    x = ir.Var("x", ir.tensor((_ELEMENTS,), dtype))
    bb = BlockBuilder()
    with bb.function("main", [x]), bb.dataflow():
        out = bb.emit_output(te.call_te(bb, polynomials, x))
        bb.emit_func_output(out)
    return _runner(bb.get(), np.zeros(_ELEMENTS, dtype))


def _repeats(size: int) -> int:
    """How many copies in a row move `size` bytes each, so that calling them is not seen."""
    return min(_CHAIN, max(1, _SIZES[-1] // size))


def _moving(size: int, kernel: str) -> Callable[[], object]:
    """Copies of half of `size` bytes: they are read and written."""
    count, copy = size // 8, limit_kernels()[kernel]
    x, y = (aligned_bytes(size // 2).view(np.float32) for _ in range(2))
    x[:] = y[:] = 1

    def run() -> None:
        for _ in range(_repeats(size)):
            copy(x, y, count)

    return run


def _runner(module: ir.IRModule, *arguments: Any) -> Callable[[], object]:
    main = VirtualMachine(build(module), num_threads=1)["main"]
    return lambda: main(*arguments)
