"""What a model takes of memory and of time around its calls, each part in a process that is new.

A process grows by the most pages that it holds at once, those of files too.  What it needs to run
anything at all is there before.  Only Linux says how much it holds.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

import relax_egraph as rx
from bench import chains
from bench.figure import Figure
from bench.held import held, most
from bench.program import Array
from bench.transformer import Sizes, encoder
from relax_egraph.ir import dims
from relax_egraph.lower.runtime.driver_link import memory_of
from relax_egraph.lower.runtime.workspace import workspace_functions
from relax_egraph.passes.analyses.estimate_memory import estimate_memory

T = TypeVar("T")

BATCH, LENGTH = 8, 512

SMALL, LARGE = Sizes(12, 256, 8, 1024), Sizes(12, 768, 12, 3072)
"""Encoders: one whose tensors take as much as its weights, and one of 340 MB of weights."""

AT_MOST = 1.1
"""What a model may take for each byte of its weights and of what lives at once at the most."""


@dataclass(frozen=True, slots=True)
class Model:
    """A saved encoder; bytes are of its weights, and of tensors in a call.

    `live` are those that live at once at the most, `made` all that there are.
    """

    sizes: Sizes
    file: Path
    weights: int
    live: int
    made: int

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{self.sizes.layers} layers of {self.sizes.hidden}"

    def inputs(self) -> tuple[Array, Array]:
        """Arguments of a call."""
        random = np.random.default_rng(0)
        x = random.standard_normal((BATCH, LENGTH, self.sizes.hidden), np.float32)
        return x, np.ones((BATCH, LENGTH), np.int64)


def save_model(sizes: Sizes, file: Path) -> tuple[Model, list[Figure]]:
    """Build an encoder and save it; milliseconds."""
    _warm_up()
    module = rx.optimize(encoder(sizes))
    executable, build = _timed(lambda: rx.build(module))
    _, save = _timed(lambda: executable.save(file))
    data, plain = file.read_bytes(), file.with_suffix(".plain")
    _, write = _timed(lambda: plain.write_bytes(data))
    use = estimate_memory(rx.lower_module(module))["main"]
    extents = {"batch": BATCH, "length": LENGTH}
    weights = sum(c.nbytes for c in executable.constants if isinstance(c, np.ndarray))
    made = dims.evaluate(use.total, extents)
    model = Model(sizes, file, weights, use.peak(extents), made)
    return model, [
        Figure(f"{model.name}: build", build),
        Figure(f"{model.name}: save", save, beside={"bytes alone": write}),
    ]


def load_model(model: Model) -> tuple[list[Figure], list[Figure]]:
    """Load an encoder and call it: milliseconds, and megabytes."""
    _warm_up()
    inputs = model.inputs()
    before = held()
    executable, load = _timed(lambda: rx.load(model.file))
    loaded = most() - before
    main, create = _timed(lambda: rx.VirtualMachine(executable, num_threads=1)["main"])
    result, first = _timed(lambda: main(*inputs))
    called = most() - before
    again, later = _timed(lambda: main(*inputs))
    np.testing.assert_array_equal(again, result)
    _, read = _timed(model.file.read_bytes)
    times = [
        Figure(f"{model.name}: load", load, beside={"bytes alone": read}),
        Figure(f"{model.name}: create a machine", create),
        Figure(f"{model.name}: first call", first, beside={"next call": later}),
    ]
    _, arena = memory_of(main)
    beside = {
        "weights": model.weights / 1e6,
        "live": model.live / 1e6,
        "without reuse": (model.weights + model.made) / 1e6,
    }
    wanted = AT_MOST * (model.weights + model.live) / 1e6
    planned = model.weights + arena + result.nbytes
    memory = [
        Figure(f"{model.name}: weights, arena, result", planned / 1e6, wanted, beside),
        Figure(f"{model.name}: growth in load and call", called / 1e6, wanted, beside),
        Figure(f"{model.name}: growth in load", loaded / 1e6),
    ]
    return times, memory


def _timed(run: Callable[[], T]) -> tuple[T, float]:
    """What `run` returns, and the milliseconds that this thread was busy with it."""
    start = time.thread_time()
    result = run()
    return result, (time.thread_time() - start) * 1e3


def _warm_up() -> None:
    """Do what a process does once: load libraries, and write the code that calls code."""
    vm = rx.VirtualMachine(rx.build(chains.chain(1, symbolic=True)), num_threads=1)
    vm["main"](np.zeros(chains.WIDTH, np.float32))
    workspace_functions()
