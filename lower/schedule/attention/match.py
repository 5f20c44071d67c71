"""Recognises attention among the stages: scores of queries and keys, their softmax, its product.

It is read from the end.  What is computed element by element in between is put together to one
expression: the score of a query and a key, a map of their product.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from relax_egraph.ir.dims import Dim
from relax_egraph.lower.schedule.attention.joins import (
    Piece,
    counted_from,
    in_line,
    pieces_of,
    together,
)
from relax_egraph.lower.schedule.attention.mask import Run, split_mask
from relax_egraph.lower.schedule.attention.reader import Reader
from relax_egraph.lower.schedule.loops import ZERO
from relax_egraph.lower.schedule.product import bound_load
from relax_egraph.lower.schedule.stages import Axis, Stage
from relax_egraph.tir.analysis import tree_size
from relax_egraph.tir.expr import (
    Binary,
    Buffer,
    BufferLoad,
    Imm,
    Intrinsic,
    Select,
    TirExpr,
    TirVar,
    from_dim,
)
from relax_egraph.tir.rewrite import loads, substitute, variables

WIDEST = 512
"""How many elements a key and a value may have."""

MOST_NODES = 200
"""How large the expression of a score may be, written out."""

LOG2_E = math.log2(math.e)
"""What makes a logarithm to base 2 of a natural one."""


@dataclass(frozen=True, slots=True)
class Attention:
    """``out = Σ over key of softmax(score) · value``, of ``product = Σ over depth of query · key``.

    `score` is a map of `product` for the keys that are in the run `seen` by a query, and -∞ for
    others.  Queries are along `row`, ``None`` where there is one; keys and values do not move with
    it.  All operands may move with `batch`.  `column` is the axis of the elements of a value; it
    and `depth` are of known extent.  `before` are the stages to be computed first.
    Keys and values that are joined of several tensors have `parts`: the attention to those of each.
    Then `keys` and `values` are of the first.
    """

    before: tuple[Stage, ...]
    out: BufferLoad
    batch: tuple[Axis, ...]
    row: Axis | None
    key: Axis
    depth: Axis
    column: Axis
    queries: BufferLoad
    keys: BufferLoad
    values: BufferLoad
    product: BufferLoad
    score: TirExpr
    seen: Run
    parts: tuple["Attention", ...] = ()

    @property
    def runs(self) -> tuple["Attention", ...]:
        """The attention to the keys of each tensor, in order: itself, if there is one."""
        return self.parts or (self,)

    @property
    def rows(self) -> Dim:
        """The number of queries."""
        return self.row.extent if self.row else 1

    @property
    def size(self) -> int:
        """How many elements a key has."""
        assert isinstance(self.depth.extent, int)
        return self.depth.extent

    @property
    def width(self) -> int:
        """How many elements a value has."""
        assert isinstance(self.column.extent, int)
        return self.column.extent

    @property
    def factor(self) -> float | None:
        """The number that a score is of its product, if it is no more than a multiple."""
        match self.score:
            case Binary(kind="*", a=a, b=Imm(value=c)) | Binary(kind="*", a=Imm(value=c), b=a):
                return float(c) if a == self.product else None
            case _:
                return 1.0 if self.score == self.product else None

    def query(self, element: TirVar, point: Mapping[TirVar, TirExpr]) -> TirExpr:
        """An element of a query, by which products become scores to base 2 if they are multiples.

        `point` is what the variables of the other axes are.
        """
        at = {**point, self.depth.var: element}
        load = substitute(self.queries, at)
        factor = 1.0 if self.factor is None else self.factor * LOG2_E
        return load if factor == 1.0 else Binary("*", load, Imm(factor, "float32"))

    def at(self, row: TirExpr) -> dict[TirVar, TirExpr]:
        """The value of the variable of the queries, if there is one."""
        return {self.row.var: row} if self.row else {}


def match_attention(stages: Sequence[Stage], outputs: Sequence[Buffer]) -> Attention | None:
    """The attention that the last of `stages` ends, if all `outputs` are it or come before it."""
    stages, out = _stored(stages)
    last, reader = stages[-1], Reader(stages)
    over = _summed_over(last)
    if over is None or not any(out.buffer is b for b in outputs):
        return None
    match reader.written_out(last.value):
        case Binary(kind="*", a=a, b=b):
            found = _matched(reader, over, out, a, b) or _matched(reader, over, out, b, a)
        case _:
            return None
    own = {out.buffer, *(s.buffer for s in found.before)} if found else set[Buffer]()
    return found if own.issuperset(outputs) else None


def _stored(stages: Sequence[Stage]) -> tuple[Sequence[Stage], BufferLoad]:
    """`stages` without a last one that only puts axes in another order; where the result lies."""
    *before, last = stages
    match last.value:
        case BufferLoad(buffer=buffer, indices=indices) if before and buffer is before[-1].buffer:
            own = {i: a.var for i, a in zip(indices, before[-1].axes, strict=True)}
            wide = [a.var for a in last.axes if a.extent != 1]
            if own.keys() >= set(wide) and before[-1].reduction and last.reduction is None:
                place = tuple(own.get(a.var, ZERO) for a in last.axes)
                return before, BufferLoad(last.buffer, place)
        case _:
            pass
    return stages, BufferLoad(last.buffer, last.indices)


def _matched(
    reader: Reader, key: Axis, out: BufferLoad, shares: TirExpr, values: TirExpr
) -> Attention | None:
    match shares, values:
        case (
            Binary(
                kind="/",
                a=Intrinsic(
                    name="exp", args=(Binary(kind="-", a=score, b=BufferLoad() as top),)
                ) as power,
                b=BufferLoad() as total,
            ),
            BufferLoad() | Select(),
        ):
            pass
        case _:
            return None
    if reader.reduced(total, "+", 0.0, key) != power:
        return None
    if reader.reduced(top, "max", -math.inf, key) != score:
        return None
    products = {load for load in loads(score) if reader.is_chained(load)}
    if len(products) != 1 or tree_size(score) > MOST_NODES:
        return None
    (product,) = products
    depth = _summed_over(reader.stages[product.buffer])
    factors = depth and reader.reduced(product, "+", 0.0, depth)
    match factors:
        case Binary(kind="*", a=x, b=y):
            queries, keys = (y, x) if key.var in variables(x) else (x, y)
        case _:
            return None
    if depth is None or key.var not in variables(keys) or key.var in variables(queries):
        return None
    if not isinstance(queries, BufferLoad):
        return None
    return _over_axes(reader, key, depth, (queries, keys, values), product, score, out)


def _over_axes(
    reader: Reader,
    key: Axis,
    depth: Axis,
    operands: tuple[BufferLoad, TirExpr, TirExpr],
    product: BufferLoad,
    score: TirExpr,
    out: BufferLoad,
) -> Attention | None:
    """The attention over the axes of the last stage, by what moves with them."""
    queries, keys, values = operands
    last = reader.last
    spatial = [a for a in last.axes if a.extent != 1]
    of_score = variables(queries) | variables(keys) | variables(score)
    column = next((a for a in reversed(spatial) if a.var not in of_score), None)
    shared = variables(keys) | variables(values)
    row = next((a for a in spatial if a is not column and a.var not in shared), None)
    if column is None or not _is_some(column.extent) or not _is_some(depth.extent):
        return None
    of_keys, of_values = pieces_of(keys, key), pieces_of(values, key)
    pieces = together(of_keys, of_values) if of_keys and of_values else None
    if pieces is None:
        return None
    extents = {a.var: a.extent for a in (*spatial, key, depth)}
    read = [in_line(load, extents) for pair in pieces for load in (pair[0].load, pair[1].load)]
    queries = in_line(queries, extents)
    buffers = (last.buffer, out.buffer, product.buffer, *(o.buffer for o in (queries, *read)))
    if any(b.dtype != "float32" or 0 in b.shape for b in buffers):
        return None
    out = bound_load(out, reader.unit)
    of_score = [load for load in loads(score) if load != product]
    before = reader.needed([queries, *read, *of_score])
    if before is None:
        return None
    seen, score = split_mask(score, row.var if row else None, key.var)
    found = Attention(
        before=before,
        out=out,
        batch=tuple(a for a in spatial if a is not column and a is not row),
        row=row,
        key=key,
        depth=depth,
        column=column,
        queries=queries,
        keys=read[0],
        values=read[1],
        product=product,
        score=score,
        seen=seen,
    )
    if len(pieces) == 1:
        return found
    cut = [pair[0] for pair in pieces]
    each = zip(cut, read[::2], read[1::2], strict=True)
    return replace(found, parts=tuple(_part(found, *piece) for piece in each))


def _part(whole: Attention, piece: Piece, keys: BufferLoad, values: BufferLoad) -> Attention:
    """Attention to the keys of one piece, which are counted from where it begins."""
    key, first = whole.key.var, from_dim(piece.first)
    own = Axis(TirVar(key.name), piece.extent)
    keys, values = (counted_from(load, key, piece, own.var) for load in (keys, values))
    seen = Run(
        whole.seen.first and whole.seen.first - first, whole.seen.end and whole.seen.end - first
    )
    score = substitute(whole.score, {key: own.var + first})
    product = substitute(whole.product, {key: own.var + first})
    assert isinstance(product, BufferLoad)
    return replace(
        whole, key=own, keys=keys, values=values, score=score, product=product, seen=seen
    )


def _is_some(extent: Dim) -> bool:
    return isinstance(extent, int) and 0 < extent <= WIDEST


def _summed_over(stage: Stage) -> Axis | None:
    """The one axis that `stage` sums over, if it is a sum of one axis."""
    found = stage.reduction
    return found.axes[0] if found and found.combine == "+" and len(found.axes) == 1 else None
