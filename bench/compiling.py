"""The compiler's own time: for the digit classifier, and for parts of code generation."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import relax_egraph as rx
from bench.timing import Run
from bench.workloads import workloads
from examples.digits.model import Digits, build_model
from relax_egraph.lower.emit.module_text import Module
from relax_egraph.lower.emit.target import host
from relax_egraph.lower.intrinsics import INTRINSICS, gemm
from relax_egraph.lower.jit import compile_kernels
from relax_egraph.lower.jit.machine_code import cached_object
from relax_egraph.lower.jit.object_cache import ObjectCache
from relax_egraph.lower.pipeline import lower_module
from relax_egraph.tir.stmt import PrimFunc

TIMES = 6


@dataclass(frozen=True, slots=True)
class Compilation:
    """Seconds of processor time: of the first call, and the minimum and maximum of later ones.

    `wanted` is the bound on the minimum.
    """

    name: str
    first: float
    least: float
    most: float
    wanted: float | None = None


def compilations() -> list[Compilation]:
    """The compilations, cold unless their name mentions the cache."""
    digits = build_model(Digits.load().weights)
    best = rx.optimize(digits)
    kernel = _elementwise()
    with TemporaryDirectory() as folder:
        kept = ObjectCache(Path(folder) / "kept")
        compile_kernels(kernel, cache=kept)
        fresh = (ObjectCache(Path(folder) / str(number)) for number in count())
        return [
            _timed("digits: optimize", lambda: rx.optimize(digits)),
            _timed("digits: build, later from the cache", lambda: rx.build(best)),
            _timed("elementwise kernel", lambda: compile_kernels(kernel, cache=next(fresh)), 10e-3),
            _timed("the same, from the cache", lambda: compile_kernels(kernel, cache=kept), 0.5e-3),
            _timed("micro-kernels of products", lambda: _micro_kernels([gemm.NAME]), 60e-3),
            _timed("all micro-kernels", lambda: _micro_kernels(INTRINSICS)),
        ]


def _elementwise() -> Mapping[str, PrimFunc]:
    (module,) = workloads()["gelu(x·w+b)+x (64, 4096)"].make().modules
    functions = lower_module(rx.optimize(module)).functions
    return {name: f for name, f in functions.items() if isinstance(f, PrimFunc)}


def _micro_kernels(names: Iterable[str]) -> None:
    target = host()
    for name in names:
        module = Module(target)
        INTRINSICS[name](module, target)
        cached_object(str(module), target, ObjectCache(None))


def _timed(name: str, run: Run, wanted: float | None = None) -> Compilation:
    seconds: list[float] = []
    for _ in range(TIMES):
        start = time.thread_time()
        run()
        seconds.append(time.thread_time() - start)
    first, *later = seconds
    return Compilation(name, first, min(later), max(later), wanted)
