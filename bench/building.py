"""What it takes to make a model ready: seconds with an empty cache and a full one, and memory.

Each model is optimized and built in a process that is new, first with an empty cache, then with
what that left.  A process has made a small model before.  Only Linux says how much memory a
process holds; what is counted is what it holds beside the module that it is given.
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
from bench.held import held, most
from bench.measure import known
from bench.networks import named_layers
from bench.program import program_of
from bench.transformer import Sizes, encoder
from bench.work import sizes_of
from relax_egraph.lower.jit.object_cache import ENVIRONMENT
from relax_egraph.passes.analyses.estimate_memory import estimate_memory

DEPTHS = (12, 24, 48, 96)
"""Layers of encoders of 256 elements: time is to grow as they do."""

LENGTH = 128


@dataclass(frozen=True, slots=True)
class Making:
    """One process: CPU seconds of each step, and the bytes that it held more at the most."""

    optimize: float
    build: float
    peak: int

    @property
    def seconds(self) -> float:
        """Of both steps."""
        return self.optimize + self.build


@dataclass(frozen=True, slots=True)
class Building:
    """A model: what it is made of, and how long that took `cold` and `warm`, by the cache.

    Bytes are of its weights, and of the tensors that live at once in a call.  The seconds are to
    be no more than what is `wanted`, by the name of the process.
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
        """The most bytes that were held, for each byte of weights and live tensors."""
        return self.cold.peak / (self.weights + self.live)


HELD_AT_MOST = 1.2
"""What `Building.held` is to be."""

Model = tuple[rx.IRModule, Mapping[str, int]]
"""A module, and sizes of its symbols."""

_TWELVE = f"{named_layers(12)}, s = {LENGTH}"
_WANTED: Mapping[str, Mapping[str, float]] = {_TWELVE: {"cold": 1.5, "warm": 0.5}}


def buildings() -> list[Building]:
    """All of them."""
    made: dict[str, Callable[[], Model]] = {
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
    made |= {f"{named_layers(n)} of 256": partial(_deep, n) for n in DEPTHS}
    return [building(name, model, _WANTED.get(name, {})) for name, model in made.items()]


def building(name: str, model: Callable[[], Model], wanted: Mapping[str, float]) -> Building:
    """Make `model` in two processes, with one cache."""
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
    """Make `model` once; kernels, and the bytes of weights and live tensors, if they are wanted."""
    with TemporaryDirectory() as other:
        os.environ[ENVIRONMENT] = other
        rx.build(rx.optimize(encoder(Sizes(1))))
    os.environ[ENVIRONMENT] = cache
    module, sizes = model()
    _touch(sum(c.nbytes for c in program_of(module).constants.values()) * 2)
    gc.collect()
    before = held()
    start = time.process_time()
    made = [rx.optimize(module)]
    optimized = time.process_time()
    executable = rx.build(made.pop())  # weights that were made on the way are let go
    built = time.process_time()
    making = Making(optimized - start, built - optimized, most() - before)
    if not counted:
        return making, (0, 0, 0)
    weights = sum(c.nbytes for c in program_of(module).constants.values())
    del executable
    best = rx.optimize(module)
    live = estimate_memory(rx.lower_module(best))["main"].peak(sizes)
    return making, (census(best).kernels.total(), weights, live)


def _touch(nbytes: int) -> None:
    """Use so much memory, and let it go: a virtual machine may have to be given it first.

    That takes 2 µs for each KiB where it is given in small pages, more than all that is measured.
    """
    np.zeros(nbytes, np.uint8)[:: 1 << 12] = 1
