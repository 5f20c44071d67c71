"""Loop functions that are no tensor expressions: their names, their loops, the whole."""

from collections.abc import Sequence

from relax_egraph.ir import dims
from relax_egraph.tir import te
from relax_egraph.tir.analysis import symbols_of_buffers, symbols_of_stmt, unbound_symbols
from relax_egraph.tir.expr import Buffer, TirVar, from_dim
from relax_egraph.tir.stmt import For, LoopKind, PrimFunc, Stmt

ZERO = te.const(0, "int64")


def taken_by(*buffers: Buffer) -> set[str]:
    """The names of `buffers` and of the symbols in their shapes."""
    return {*(b.name for b in buffers), *symbols_of_buffers(buffers)}


def free(name: str, taken: set[str]) -> str:
    """`name`, or what is free of `taken` and begins so."""
    while name in taken:
        name += "_"
    return name


def around(loops: Sequence[tuple[TirVar, dims.Dim]], body: Stmt, kind: LoopKind = "serial") -> Stmt:
    """`body` in loops of `kind`, the first outermost."""
    for var, extent in reversed(loops):
        body = For(var, from_dim(extent), kind, body)
    return body


def loop_function(params: tuple[Buffer, ...], body: Stmt, num_outputs: int = 1) -> PrimFunc:
    """The function of `params`, the last of which `body` writes."""
    return PrimFunc(params, body, num_outputs, unbound_symbols(params, symbols_of_stmt(body)))
