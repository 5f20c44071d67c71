"""Attention: tiles of scores that never leave the cache, with a running softmax.

Queries are processed in blocks, each a task of its own.  For each block of keys their scores are
computed by tiles, replaced by powers, and multiplied with the values.
"""

from collections.abc import Sequence

from relax_egraph.lower.schedule.attention.decode import by_keys, streams
from relax_egraph.lower.schedule.attention.match import Attention, match_attention
from relax_egraph.lower.schedule.attention.tiles import by_tiles
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.reductions import loops
from relax_egraph.lower.schedule.scheduled import Scheduled, assemble
from relax_egraph.lower.schedule.stages import Stage
from relax_egraph.tir.expr import Binary, Imm, from_dim
from relax_egraph.tir.stmt import IfThenElse, PrimFunc, Stmt

FEW = 4
"""The maximal number of queries for which keys and values are streamed and not packed."""


def apply(function: PrimFunc, stages: Sequence[Stage]) -> Scheduled | None:
    """The schedule of `function` if it is one attention, perhaps of operands computed before."""
    match = match_attention(stages, function.outputs)
    if match is None:
        return None
    names = Names.beside(function)
    before = [loops(s, names) for s in match.before]
    return assemble(function, "attention", [*before, _by_length(match, names)])


def _by_length(p: Attention, names: Names) -> Stmt:
    if not streams(p):
        return by_tiles(p, names)
    if isinstance(p.rows, int):
        return by_keys(p, p.rows, names) if p.rows <= FEW else by_tiles(p, names)
    is_short = Binary("<=", from_dim(p.rows), Imm(FEW, "int64"))
    return IfThenElse(is_short, by_keys(p, FEW, names), by_tiles(p, names))
