"""The interface of systems: they compile a module, bind arguments, and run without any."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from bench.program import Array
from bench.timing import Run
from relax_egraph.ir.module import IRModule
from relax_egraph.vm.call_report import CallReport
from relax_egraph.vm.storage import aligned_bytes


@dataclass(frozen=True, slots=True)
class Bound:
    """A compiled module with its arguments.

    `run` computes synchronously; `result` returns the result in memory of its own; `profile`
    returns the times of parts, if the system can.  All keep alive what they use.
    """

    run: Run
    result: Callable[[], Array]
    profile: Callable[[], CallReport] | None = None


Bind: TypeAlias = Callable[[Sequence[Array]], Bound]

Compile: TypeAlias = Callable[[IRModule, int], Bind]
"""Maps a module and the number of threads to a function that binds arguments.

Raises `program.NotRunnable` for a module that the system does not support.
"""


def empty(count: int) -> Array:
    """Uninitialised float32 numbers, aligned to 64 bytes."""
    return aligned_bytes(4 * count).view(np.float32)


def empty_like(array: Array) -> Array:
    """Uninitialised memory for an array of the same shape and dtype, aligned to 64 bytes."""
    return aligned_bytes(array.nbytes).view(array.dtype).reshape(array.shape)
