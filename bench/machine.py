"""The virtual machine: calls of tiny kernels, and the memory of whole models.

Bounds are for the native engine unless they are beside the interpreter.
"""

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import peers
from bench.dispatch import (
    digits_figures,
    dispatch_figures,
    entry_figures,
    making_figures,
)
from bench.figure import Figure
from bench.footprint import LARGE, SMALL, load_model, save_model


@dataclass(frozen=True, slots=True)
class Group:
    """Figures of one unit."""

    title: str
    figures: list[Figure]


def machine_groups(seconds: float) -> list[Group]:
    """All figures, each part in a new process."""
    os.environ.update(peers.environment(1))
    context = multiprocessing.get_context("spawn")
    times: list[Figure] = []
    memory: list[Figure] = []
    with (
        TemporaryDirectory() as folder,
        ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as new,
    ):
        dispatch = new.submit(dispatch_figures, seconds).result()
        entry = new.submit(entry_figures, seconds).result()
        entry += new.submit(digits_figures, seconds).result()
        making = new.submit(making_figures, seconds).result()
        for sizes in (SMALL, LARGE):
            file = Path(folder) / f"{sizes.hidden}.rxe"
            model, build_times = new.submit(save_model, sizes, file).result()
            loaded, megabytes = new.submit(load_model, model).result()
            times += [*build_times, *loaded]
            memory += megabytes
    return [
        Group("between kernels of 8 elements, ns", dispatch),
        Group("a call from Python, ns", entry),
        Group("before the first call, µs", making),
        Group("memory of encoders, MB", memory),
        Group("encoders and their files, CPU ms", times),
    ]
