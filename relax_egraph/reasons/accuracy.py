"""How far one program's results are from another's, and by what.

best = rx.optimize(module, tolerance=0.02)
relative_errors(best, module, x)                 # of each output: 0.01
approximations(best)                             # of its kernels: conv2d by F(4, 3), at most 3e-5
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from relax_egraph.build import build
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.tolerance import tolerance_of
from relax_egraph.lower.pipeline import lower_module
from relax_egraph.lower.schedule.conv import FILTER
from relax_egraph.lower.schedule.conv.minimal_filters import APPROXIMATE
from relax_egraph.tir.stmt import PrimFunc
from relax_egraph.vm.machine import VirtualMachine


def relative_errors(
    module: IRModule, reference: IRModule, *inputs: Any, function: str = "main"
) -> tuple[float, ...]:
    """For each output of `function` the norm of the difference, relative to that of `reference`.

    Both are built and run on `inputs`.  Of outputs that are the same it is 0; infinite if only that
    of `reference` is 0 throughout, and not a number if one of two that differ is infinite.
    """
    ours, theirs = (_results(m, inputs, function) for m in (module, reference))
    return tuple(map(_error, ours, theirs))


def _results(module: IRModule, inputs: tuple[Any, ...], function: str) -> list[Any]:
    found = VirtualMachine(build(module))[function](*inputs)
    given = found if isinstance(found, tuple) else (found,)
    return [np.asarray(array).astype(np.float64) for array in given]


def _error(a: Any, b: Any) -> float:
    if np.array_equal(a, b, equal_nan=True):
        return 0.0
    with np.errstate(all="ignore"):
        return float(np.linalg.norm(a - b) / np.linalg.norm(b))


@dataclass(frozen=True, slots=True)
class Approximation:
    """A kernel that computes `by` what errs: by at most `error` of the results' mean magnitude."""

    kernel: str
    by: str
    error: float

    def __str__(self) -> str:
        return f"by {self.by}, off by at most {self.error:.0e} of the results' mean magnitude"


def approximations(module: IRModule) -> tuple[Approximation, ...]:
    """The kernels of `module` that its ``tolerance`` makes less exact, as it is lowered.

    What weights lose that are stored in fewer bits is in ``Explanation.weights``.
    """
    if not any(tolerance_of(name, f.attrs) for name, f in module.functions.items()):
        return ()
    found: list[Approximation] = []
    for name, function in lower_module(module).functions.items():
        by = function.attrs.get(FILTER) if isinstance(function, PrimFunc) else None
        if isinstance(by, str) and by in APPROXIMATE:
            found.append(Approximation(name, by, APPROXIMATE[by]))
    return tuple(found)
