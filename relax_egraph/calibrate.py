"""Measure this machine, as kernels of this compiler use it.

    profile = rx.calibrate()                  # takes some seconds, on one core
    best = rx.optimize(module, profile=profile)

Rates are those of kernels that reach a known share of what the machine could: ``Schedule`` says
which.  So prices of kernels by the profile are the times that they take here.
"""

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from relax_egraph import ir
from relax_egraph.build import build
from relax_egraph.errors import ExtractionError
from relax_egraph.extract import Level, Profile
from relax_egraph.lower.object_cache import default_folder
from relax_egraph.lower.target import host
from relax_egraph.tir import te
from relax_egraph.tir.block_builder import BlockBuilder
from relax_egraph.vm.machine import VirtualMachine

_MATMUL_SHARE, _MAP_SHARE = 0.9, 0.8
"""What matrix products reach of peak arithmetic, and what elementwise kernels do of bandwidth."""

_SIDE = 512
_CHAIN = 64
"""Kernels on one element, each of which reads what the one before it wrote."""

_ELEMENTS, _APART, _TERMS = 1 << 15, 16, 8
"""Elements of one tensor, and for each of them independent polynomials, and their terms: the former
hide the latency of an operation."""

_SIZES = tuple(1 << k for k in range(18, 28))
"""Bytes that an elementwise kernel moves: enough to be seen beside its launch, to what no cache
holds."""

_SLOWER = 0.7
"""At this share of a level's bandwidth the next level begins."""

_TURN = 3
_DTYPES = ("float32", "float64", "int8", "uint8", "int16", "int32", "int64")


def calibrate(seconds: float = 15.0) -> Profile:
    """Measure for about so many `seconds`; more make the figures of a busy machine steadier.

    Each figure is the best of all tries: other programs only ever make it worse.
    """
    chain, product = _chain_of_kernels(), _product()
    maps = {dtype: _arithmetic(dtype) for dtype in _DTYPES}
    moves = {size: _moving(size, _repeats(size)) for size in _SIZES}
    runs: dict[object, Callable[[], object]] = {"chain": chain, "product": product}
    runs |= {("map", dtype): run for dtype, run in maps.items()}
    runs |= {size: run for size, run in moves.items()}
    best = _best_of(runs, seconds)
    launch = best["chain"] / _CHAIN
    flops = 2 * _SIDE**3 / (best["product"] - launch) / _MATMUL_SHARE
    mapping = {dtype: best["map", dtype] - launch for dtype in _DTYPES}
    peak = {dtype: flops * mapping["float32"] / mapping[dtype] for dtype in _DTYPES}
    moving = {size: max(best[size] / _repeats(size) - launch, 1e-9) for size in _SIZES}
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
            yield Level(float(held), bandwidth / _MAP_SHARE)
            bandwidth = more
        held, spent = size, moving[size]
    yield Level(math.inf, bandwidth / _MAP_SHARE)


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


def _product() -> Callable[[], object]:
    bb = BlockBuilder()
    x = ir.Var("x", ir.tensor((_SIDE, _SIDE), "float32"))
    weight = np.ones((_SIDE, _SIDE), "float32")
    with bb.function("main", [x]), bb.dataflow():
        out = bb.emit_output(ir.call("matmul", x, ir.const(weight)))
        bb.emit_func_output(out)
    return _runner(bb.get(), weight)


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
    """How many kernels in a row move `size` bytes each, so that calling them is not seen."""
    return min(_CHAIN, max(1, _SIZES[-1] // size))


def _moving(size: int, repeats: int) -> Callable[[], object]:
    """Sums of two tensors: each moves three of the same size, `size` bytes together."""
    count = size // 12
    info = ir.tensor((count,), "float32")
    x, y = ir.Var("x", info), ir.Var("y", info)
    bb = BlockBuilder()
    with bb.function("main", [x, y]), bb.dataflow():
        value = x
        for _ in range(repeats):
            value = bb.emit(ir.call("add", value, y))
        out = bb.emit_output(value)
        bb.emit_func_output(out)
    return _runner(bb.get(), *(np.ones(count, "float32") for _ in range(2)))


def _runner(module: ir.IRModule, *arguments: Any) -> Callable[[], object]:
    main = VirtualMachine(build(module))["main"]
    return lambda: main(*arguments)
