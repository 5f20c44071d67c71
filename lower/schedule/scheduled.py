"""A scheduled function, put together."""

from collections.abc import Sequence
from dataclasses import replace

from relax_egraph.tir.analysis import buffers_of
from relax_egraph.tir.expr import Buffer
from relax_egraph.tir.stmt import PrimFunc, Stmt, seq


def finished(
    function: PrimFunc, anchor: str, body: Sequence[Stmt], allocs: Sequence[Buffer] = ()
) -> PrimFunc:
    """`function` with `body`, the allocations that it still uses and `allocs`.

    The attribute ``schedule`` says which `anchor` it is.
    """
    whole = seq(*body)
    used = buffers_of(whole)
    kept = tuple(b for b in function.allocs if b in used)
    attrs = {**function.attrs, "schedule": anchor}
    return replace(function, body=whole, allocs=(*kept, *allocs), attrs=attrs)
