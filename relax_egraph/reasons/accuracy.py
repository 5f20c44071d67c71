"""Relative errors of a program against a reference, and the kernels that approximate.

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
    """The norm of each output's difference, relative to the norm of the output of `reference`.

    Both modules are built, and `function` runs on `inputs`.  The error of equal outputs is 0.  It
    is infinite if only the reference is 0 throughout, and NaN if outputs differ and one is
    infinite.
    """
    ours, theirs = (_results(m, inputs, function) for m in (module, reference))
    return tuple(map(_error, ours, theirs))


def _results(module: IRModule, inputs: tuple[Any, ...], function: str) -> list[Any]:
    result = VirtualMachine(build(module))[function](*inputs)
    outputs = result if isinstance(result, tuple) else (result,)
    return [np.asarray(array).astype(np.float64) for array in outputs]


def _error(a: Any, b: Any) -> float:
    if np.array_equal(a, b, equal_nan=True):
        return 0.0
    with np.errstate(all="ignore"):
        return float(np.linalg.norm(a - b) / np.linalg.norm(b))


@dataclass(frozen=True, slots=True)
class Approximation:
    """A kernel whose algorithm, `by`, errs by at most `error` of the results' mean magnitude."""

    kernel: str
    by: str
    error: float

    def __str__(self) -> str:
        return f"by {self.by}, off by at most {self.error:.0e} of the results' mean magnitude"


def approximations(module: IRModule) -> tuple[Approximation, ...]:
    """The kernels of `module` that lowering makes less exact within its ``tolerance``.

    The errors of weights in fewer bits are in ``Explanation.weights``.
    """
    if not any(tolerance_of(name, f.attrs) for name, f in module.functions.items()):
        return ()
    kernels: list[Approximation] = []
    for name, function in lower_module(module).functions.items():
        by = function.attrs.get(FILTER) if isinstance(function, PrimFunc) else None
        if isinstance(by, str) and by in APPROXIMATE:
            kernels.append(Approximation(name, by, APPROXIMATE[by]))
    return tuple(kernels)
