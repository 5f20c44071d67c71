"""Computation of prepared operands from constants, when the constants are stored.

Before that a program contains `Deferred` constants, which have a type and no memory.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from relax_egraph.ir.expr import Constant, Expr, Function
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.lower import jit
from relax_egraph.lower.intrinsics import INTRINSICS
from relax_egraph.lower.pack import pack
from relax_egraph.lower.schedule.packed import Panels
from relax_egraph.lower.schedule.scheduled import Prepared
from relax_egraph.passes.infra import function_pass
from relax_egraph.tir.expr import Buffer
from relax_egraph.tir.stmt import PrimFunc
from relax_egraph.vm.deferred import deferred, materialize
from relax_egraph.vm.storage import aligned_bytes

Array: TypeAlias = npt.NDArray[np.generic]

Compute: TypeAlias = Callable[[Sequence[Array]], Sequence[Array]]
"""Maps constants to results."""


class Preparation:
    """Computes `prepared` operands, once for equal recipes and the same constants."""

    def __init__(self, prepared: Iterable[Prepared]) -> None:
        loops = [p.recipe for p in prepared if isinstance(p.recipe, PrimFunc)]
        functions = {f"prepare{k}": function for k, function in enumerate(dict.fromkeys(loops))}
        kernels = jit.link(jit.compile_kernels(functions, intrinsics=INTRINSICS))
        self._kernels = {function: kernels[name] for name, function in functions.items()}
        self._results: dict[object, tuple[Constant, ...]] = {}

    def results(
        self, prepared: Prepared, constants: Sequence[Constant]
    ) -> Mapping[Buffer, Constant]:
        """The constant for each result of `prepared`, computed from `constants`."""
        arrays = tuple(c.data for c in constants)
        key = (prepared.recipe, *map(id, arrays))
        if key not in self._results:
            run = _Run(self._compute(prepared.recipe), arrays)
            self._results[key] = tuple(run.constant(k, b) for k, b in enumerate(prepared.results))
        return dict(zip(prepared.results, self._results[key], strict=True))

    def _compute(self, recipe: PrimFunc | Panels) -> Compute:
        if isinstance(recipe, Panels):
            return lambda constants: [pack(c, recipe) for c in constants]
        return partial(_by_kernel, self._kernels[recipe], recipe.outputs)


@dataclass(slots=True)
class _Run:
    """A run of `compute` on `constants`, when the first of its results is stored."""

    compute: Compute
    constants: tuple[Array, ...]
    results: Sequence[Array] = ()

    def constant(self, number: int, buffer: Buffer) -> Constant:
        """The constant for result `number`, with the type of `buffer`."""
        result = partial(self.result, number)
        return Constant(deferred(_extents(buffer), np.dtype(buffer.dtype), result))

    def result(self, number: int) -> Array:
        """Result `number`; the operands are released."""
        if not self.results:
            self.results = self.compute([materialize(c) for c in self.constants])
            self.constants = ()
        return self.results[number]


def _by_kernel(
    kernel: jit.Kernel, outputs: Sequence[Buffer], constants: Sequence[Array]
) -> Sequence[Array]:
    results = [_room(b) for b in outputs]
    kernel(*map(np.ascontiguousarray, constants), *results)
    return results


def _room(buffer: Buffer) -> Array:
    """Zeros for `buffer`, on a cache line: kernels also read beside a narrow panel."""
    shape, dtype = _extents(buffer), np.dtype(buffer.dtype)
    memory = aligned_bytes(int(np.prod(shape)) * dtype.itemsize)
    memory[:] = 0
    return np.ndarray(shape, dtype, memory.data)


def _extents(buffer: Buffer) -> tuple[int, ...]:
    return tuple(d for d in buffer.shape if isinstance(d, int))


@function_pass(name="store_constants")
def store_constants(function: Function, _: IRModule) -> Function:
    """Compute the constants that are `Deferred`."""
    changed = _Storing().visit_expr(function)
    assert isinstance(changed, Function)
    return changed


class _Storing(ExprMutator):
    def visit_constant(self, constant: Constant) -> Expr:
        data = materialize(constant.data)
        return constant if data is constant.data else Constant(data)
