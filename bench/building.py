"""The cost of making a model ready: seconds with an empty and with a full cache, and memory.

Each model is optimized and built in a new process, first with an empty cache, then with the cache
of the first process.  Each process builds a small model before.  Only Linux reports the memory of a
process; measured is the memory beyond that of the module.
"""

import gc
import multiprocessing
import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from tempfile import TemporaryDirectory

import numpy as np

import relax_egraph as rx
from bench.census import census
from bench.measure import known
from bench.networks import named_layers
from bench.program import program_of
from bench.resident import peak_resident, resident
from bench.transformer import Sizes, encoder
from bench.work import sizes_of
from relax_egraph.lower.jit.object_cache import ENVIRONMENT
from relax_egraph.passes.analyses.estimate_memory import estimate_memory

DEPTHS = (12, 24, 48, 96)
"""The layers of encoders of 256 elements, over which time should be linear."""

LENGTH = 128


@dataclass(frozen=True, slots=True)
class Making:
    """One process: CPU seconds of each step, and its peak of additional bytes."""

    optimize: float
    build: float
    peak: int

    @property
    def seconds(self) -> float:
        """The sum over both steps."""
        return self.optimize + self.build


@dataclass(frozen=True, slots=True)
class Building:
    """A model, with the times of its builds, `cold` and `warm` by the cache.

    Bytes are of its weights, and of the tensors that live at once in a call.  The bounds on seconds
    are `wanted`, by the name of the process.
    """

    name: str
    kernels: int
    weights: int
    live: int
    cold: Making
    warm: Making
    wanted: Mapping[str, float]

    @property
    def held(self) -> float:
        """The peak memory for each byte of weights and live tensors."""
        return self.cold.peak / (self.weights + self.live)


HELD_AT_MOST = 1.2
"""The bound on `Building.held`."""

Model = tuple[rx.IRModule, Mapping[str, int]]
"""A module, and sizes of its symbols."""

_TWELVE = f"{named_layers(12)}, s = {LENGTH}"
_WANTED: Mapping[str, Mapping[str, float]] = {_TWELVE: {"cold": 1.5, "warm": 0.5}}


def buildings() -> list[Building]:
    """All models."""
    models: dict[str, Callable[[], Model]] = {
        name: partial(_network, name)
        for name in (
            f"{named_layers(1)}, s = {LENGTH}",
            _TWELVE,
            "ResNet basic block, 64×56²",
            "ResNet-50, n = 1",
            "LLaMA decode, cache 2048",
            "LLaMA prefill, s = 128",
        )
    }
    models |= {f"{named_layers(n)} of 256": partial(_deep, n) for n in DEPTHS}
    return [building(name, model, _WANTED.get(name, {})) for name, model in models.items()]


def building(name: str, model: Callable[[], Model], wanted: Mapping[str, float]) -> Building:
    """Build `model` in two processes with one cache."""
    context = multiprocessing.get_context("spawn")
    with (
        TemporaryDirectory() as folder,
        ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as new,
    ):
        cold, (kernels, weights, live) = new.submit(_making, model, folder, counted=True).result()
        warm, _ = new.submit(_making, model, folder, counted=False).result()
    return Building(name, kernels, weights, live, cold, warm, wanted)


def _network(name: str) -> Model:
    task = known(None)[name].make()
    (module,) = task.modules
    return module, sizes_of(program_of(module), task.inputs)


def _deep(layers: int) -> Model:
    return encoder(Sizes(layers, 256, 8, 1024)), {"batch": 1, "length": LENGTH}


def _making(
    model: Callable[[], Model], cache: str, counted: bool
) -> tuple[Making, tuple[int, int, int]]:
    """Build `model` once; count kernels, and bytes of weights and live tensors, if requested."""
    with TemporaryDirectory() as other:
        os.environ[ENVIRONMENT] = other
        rx.build(rx.optimize(encoder(Sizes(1))))
    os.environ[ENVIRONMENT] = cache
    module, sizes = model()
    _touch(sum(c.nbytes for c in program_of(module).constants.values()) * 2)
    gc.collect()
    before = resident()
    start = time.process_time()
    modules = [rx.optimize(module)]
    optimized = time.process_time()
    executable = rx.build(modules.pop())  # releases intermediate weights
    built = time.process_time()
    making = Making(optimized - start, built - optimized, peak_resident() - before)
    if not counted:
        return making, (0, 0, 0)
    weights = sum(c.nbytes for c in program_of(module).constants.values())
    del executable
    best = rx.optimize(module)
    live = estimate_memory(rx.lower_module(best))["main"].peak(sizes)
    return making, (census(best).kernels.total(), weights, live)


def _touch(nbytes: int) -> None:
    """Use and release memory, which a virtual machine may have to be granted first.

    That takes 2 µs for each KiB if it is granted in small pages, more than everything measured.
    """
    np.zeros(nbytes, np.uint8)[:: 1 << 12] = 1
