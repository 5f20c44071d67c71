"""Streamed buffers: prefetched inputs, and large outputs written by non-temporal stores.

A schedule lists, in the attribute ``streamed``, the parameters that a function traverses once.
A store past the caches saves reading the cache line first, but a reader of the result then waits
for memory: it pays for results that would not have stayed in the caches anyway.
"""

from collections.abc import Sequence

from relax_egraph.ir import dims
from relax_egraph.lower.codegen.expr import evaluate
from relax_egraph.lower.codegen.index import Ramp, Repeated
from relax_egraph.lower.codegen.memory import offset
from relax_egraph.lower.codegen.scope import MEMORY_TYPES, Frame, Scope
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.module_text import I8, I64
from relax_egraph.tir.expr import Buffer, TirExpr, TirVar, from_dim
from relax_egraph.tir.rewrite import loads
from relax_egraph.tir.stmt import PrimFunc, Store

ATTRIBUTE = "streamed"
"""The attribute of a scheduled function: the only one that affects its code."""

LARGE = 1 << 24
"""The bytes of a result from which on it does not fit the caches."""

AHEAD = 1 << 13
"""The prefetch distance in bytes: the processor's own prefetching stops at a page boundary."""

NARROWEST = 16
"""The minimal bytes of a vector that is stored past the caches."""


def streamed_buffers(function: PrimFunc) -> frozenset[Buffer]:
    """The parameters whose numbers the attribute ``streamed`` of `function` lists."""
    numbers = function.attrs.get(ATTRIBUTE)
    if not isinstance(numbers, tuple):
        return frozenset()
    return frozenset(b for k, b in enumerate(function.params) if k in numbers)


def fetch_ahead(scope: Scope, values: Sequence[TirExpr]) -> None:
    """Prefetch the elements of streamed buffers that `values` will read some iterations later."""
    if not scope.frame.streamed:
        return
    reads = {r: None for v in values for r in loads(v) if r.buffer in scope.frame.streamed}
    for read in reads:
        if any(loads(i) for i in read.indices):
            continue
        place = _place(scope, read.buffer, read.indices)
        if place is not None:
            scope.frame.f.prefetch(scope.frame.f.address(place, AHEAD, I8))


def past_caches(scope: Scope, var: TirVar, stmt: Store) -> Value | None:
    """Whether `stmt`, in a loop over `var` from 0 in whole vectors, stores past the caches.

    It does if its buffer is large and the vectors are aligned to their size.  ``None`` means never.
    """
    f, buffer = scope.frame.f, stmt.buffer
    element = MEMORY_TYPES[buffer.dtype]
    if buffer not in scope.frame.streamed or element.bits * scope.lanes < 8 * NARROWEST:
        return None
    place = _place(scope.with_variable(var, Ramp(0, 1)).fresh(), buffer, stmt.indices)
    size = evaluate(scope.fresh(), from_dim(dims.product(buffer.shape)))
    assert not isinstance(size, Ramp | Repeated)
    least = LARGE * 8 // element.bits
    if place is None or (isinstance(size, int) and size < least):
        return None
    bits = f.emit(I64, f"ptrtoint {place} to i64")
    aligned = f.compare("==", bits & (element.bits * scope.lanes // 8 - 1), 0)
    return aligned if isinstance(size, int) else aligned & f.compare(">=", size, least)


def in_order(frame: Frame) -> None:
    """Order non-temporal stores before all later writes."""
    if frame.streamed:
        frame.f.line("fence seq_cst")


def _place(scope: Scope, buffer: Buffer, indices: Sequence[TirExpr]) -> Value | None:
    """The address of a contiguous vector; ``None`` if the lanes are not adjacent."""
    at = offset(scope, buffer, [evaluate(scope, i) for i in indices])
    if not isinstance(at, Ramp) or at.step != 1:
        return None
    return scope.frame.f.address(scope.frame.pointers[buffer], at.base, MEMORY_TYPES[buffer.dtype])
