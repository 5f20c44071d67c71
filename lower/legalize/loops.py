"""Construction of loop functions that are not tensor expressions."""

from collections.abc import Sequence

from relax_egraph.ir import dims
from relax_egraph.tir import te
from relax_egraph.tir.analysis import symbols_of_buffers, symbols_of_stmt, unbound_symbols
from relax_egraph.tir.expr import Buffer, TirVar, from_dim
from relax_egraph.tir.stmt import For, LoopKind, PrimFunc, Stmt

ZERO = te.const(0, "int64")


def names_of(*buffers: Buffer) -> set[str]:
    """The names of `buffers` and of the symbols in their shapes."""
    return {*(b.name for b in buffers), *symbols_of_buffers(buffers)}


def free(name: str, used: set[str]) -> str:
    """`name`, with underscores appended until it is not in `used`."""
    while name in used:
        name += "_"
    return name


def around(loops: Sequence[tuple[TirVar, dims.Dim]], body: Stmt, kind: LoopKind = "serial") -> Stmt:
    """`body` in nested loops of `kind`, the first one outermost."""
    for var, extent in reversed(loops):
        body = For(var, from_dim(extent), kind, body)
    return body


def loop_function(params: tuple[Buffer, ...], body: Stmt, num_outputs: int = 1) -> PrimFunc:
    """The function of `params`, of which `body` writes the last `num_outputs`."""
    return PrimFunc(params, body, num_outputs, unbound_symbols(params, symbols_of_stmt(body)))
