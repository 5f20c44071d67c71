"""A scheduled function, put together."""

from collections.abc import Sequence
from dataclasses import replace

from relax_egraph.tir.expr import Buffer
from relax_egraph.tir.rewrite import loads, statements, stores
from relax_egraph.tir.stmt import PrimFunc, Stmt, TensorIntrinsic, seq


def finished(
    function: PrimFunc, anchor: str, body: Sequence[Stmt], allocs: Sequence[Buffer] = ()
) -> PrimFunc:
    """`function` with `body`, the allocations that it still uses and `allocs`.

    The attribute ``schedule`` says which `anchor` it is.
    """
    whole = seq(*body)
    used = {id(load.buffer) for load in loads(whole)} | {id(s.buffer) for s in stores(whole)}
    for s in statements(whole):
        if isinstance(s, TensorIntrinsic):
            used |= {id(buffer) for buffer, _ in s.buffers}
    kept = tuple(b for b in function.allocs if id(b) in used)
    attrs = {**function.attrs, "schedule": anchor}
    return replace(function, body=whole, allocs=(*kept, *allocs), attrs=attrs)
