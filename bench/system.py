"""What runs modules: it compiles one, takes arguments for it, and is then called with none."""

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

    `run` computes, and returns when that is done; `result` is what it computes, in memory of its
    own; `profile` says where the time goes, if the system can.  All keep alive what they use.
    """

    run: Run
    result: Callable[[], Array]
    profile: Callable[[], CallReport] | None = None


Bind: TypeAlias = Callable[[Sequence[Array]], Bound]

Compile: TypeAlias = Callable[[IRModule, int], Bind]
"""Of a module and the number of threads, what binds arguments.

Raises `program.NotRunnable` for a module that the system does not run.
"""


def empty(count: int) -> Array:
    """So many uninitialised float32 numbers, from a 64-byte line on."""
    return aligned_bytes(4 * count).view(np.float32)


def empty_like(array: Array) -> Array:
    """Memory for a float32 array of the same shape, from a 64-byte line on."""
    return empty(array.size).reshape(array.shape)
