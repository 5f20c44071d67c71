"""How far one program's results are from another's.

best = rx.optimize(module, tolerance=0.02)
relative_errors(best, module, x)                 # of each output: 0.01
"""

from typing import Any

import numpy as np

from relax_egraph.build import build
from relax_egraph.ir.module import IRModule
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
