"""The memory of a model, and the time around its calls, each part in a new process.

The growth of a process is its peak of resident pages, including those of files.  Memory that any
run needs is allocated before.  Only Linux reports it.
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
from bench.program import Array
from bench.resident import peak_resident, resident
from bench.transformer import Sizes, encoder
from relax_egraph.ir import dims
from relax_egraph.lower.runtime.driver_link import memory_of
from relax_egraph.lower.runtime.workspace import workspace_functions
from relax_egraph.passes.analyses.estimate_memory import estimate_memory

T = TypeVar("T")

BATCH, LENGTH = 8, 512

SMALL, LARGE = Sizes(12, 256, 8, 1024), Sizes(12, 768, 12, 3072)
"""Encoders: one whose tensors are as large as its weights, and one of 340 MB of weights."""

AT_MOST = 1.1
"""The bound on memory for each byte of weights and of tensors that live at once."""


@dataclass(frozen=True, slots=True)
class Model:
    """A saved encoder; bytes are of its weights, and of tensors in a call.

    `live` is the peak of live tensors, `made` the sum of all.
    """

    sizes: Sizes
    file: Path
    weights: int
    live: int
    made: int

    @property
    def name(self) -> str:
        """The name of the model."""
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
    before = resident()
    executable, load = _timed(lambda: rx.load(model.file))
    loaded = peak_resident() - before
    main, create = _timed(lambda: rx.VirtualMachine(executable, num_threads=1)["main"])
    result, first = _timed(lambda: main(*inputs))
    called = peak_resident() - before
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
    """The result of `run`, and the milliseconds that this thread was busy with it."""
    start = time.thread_time()
    result = run()
    return result, (time.thread_time() - start) * 1e3


def _warm_up() -> None:
    """Do one-time work of the process: load libraries, and write the code of calls."""
    vm = rx.VirtualMachine(rx.build(chains.chain(1, symbolic=True)), num_threads=1)
    vm["main"](np.zeros(chains.WIDTH, np.float32))
    workspace_functions()
