"""Recognition of attention among the stages: scores, their softmax, and the weighted values.

The stages are matched from the last one on.  Elementwise stages in between are combined into one
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
"""The maximal elements of a key and of a value."""

MOST_NODES = 200
"""The maximal size of the expression of a score."""

LOG2_E = math.log2(math.e)
"""The factor from natural to base-2 logarithms."""


@dataclass(frozen=True, slots=True)
class Attention:
    """``out = Σ over key of softmax(score) · value``; ``product = Σ over depth of query · key``.

    `score` is a map of `product` for the keys in the run `seen` of a query, and -∞ for others.
    Queries are along `row`, or ``None`` for a single one; keys and values do not depend on it.
    All operands may depend on `batch`.  `column` is the axis of the elements of a value; it and
    `depth` have constant extents.  `before` are the stages to compute first.  Keys and values that
    are concatenated from several tensors have `parts`, the attention to each of them; `keys` and
    `values` are then the first.
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
        """The attention to the keys of each tensor, in order: `self` for a single tensor."""
        return self.parts or (self,)

    @property
    def rows(self) -> Dim:
        """The number of queries."""
        return self.row.extent if self.row else 1

    @property
    def size(self) -> int:
        """The number of elements of a key."""
        assert isinstance(self.depth.extent, int)
        return self.depth.extent

    @property
    def width(self) -> int:
        """The number of elements of a value."""
        assert isinstance(self.column.extent, int)
        return self.column.extent

    @property
    def factor(self) -> float | None:
        """The factor from product to score, if the score is a multiple of the product."""
        match self.score:
            case Binary(kind="*", a=a, b=Imm(value=c)) | Binary(kind="*", a=Imm(value=c), b=a):
                return float(c) if a == self.product else None
            case _:
                return 1.0 if self.score == self.product else None

    def query(self, element: TirVar, point: Mapping[TirVar, TirExpr]) -> TirExpr:
        """An element of a query, scaled so that products are base-2 scores if these are multiples.

        `point` are the values of the variables of the other axes.
        """
        at = {**point, self.depth.var: element}
        load = substitute(self.queries, at)
        factor = 1.0 if self.factor is None else self.factor * LOG2_E
        return load if factor == 1.0 else Binary("*", load, Imm(factor, "float32"))

    def at(self, row: TirExpr) -> dict[TirVar, TirExpr]:
        """The value of the variable of the queries, if it has one."""
        return {self.row.var: row} if self.row else {}


def match_attention(stages: Sequence[Stage], outputs: Sequence[Buffer]) -> Attention | None:
    """The attention that the last of `stages` completes, if all `outputs` are computed by then."""
    stages, out = _without_permutation(stages)
    last, reader = stages[-1], Reader(stages)
    over = _summed_over(last)
    if over is None or not any(out.buffer is b for b in outputs):
        return None
    match reader.expand(last.value):
        case Binary(kind="*", a=a, b=b):
            match = _match(reader, over, out, a, b) or _match(reader, over, out, b, a)
        case _:
            return None
    own = {out.buffer, *(s.buffer for s in match.before)} if match else set[Buffer]()
    return match if own.issuperset(outputs) else None


def _without_permutation(stages: Sequence[Stage]) -> tuple[Sequence[Stage], BufferLoad]:
    """`stages` without a final permutation of axes, and the place of the result."""
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


def _match(
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
    """The attention over the axes of the last stage, by the dependencies of its operands."""
    queries, keys, values = operands
    last = reader.last
    spatial = [a for a in last.axes if a.extent != 1]
    of_score = variables(queries) | variables(keys) | variables(score)
    column = next((a for a in reversed(spatial) if a.var not in of_score), None)
    shared = variables(keys) | variables(values)
    row = next((a for a in spatial if a is not column and a.var not in shared), None)
    if column is None or not _is_supported(column.extent) or not _is_supported(depth.extent):
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
    attention = Attention(
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
        return attention
    cut = [pair[0] for pair in pieces]
    each = zip(cut, read[::2], read[1::2], strict=True)
    return replace(attention, parts=tuple(_part(attention, *piece) for piece in each))


def _part(whole: Attention, piece: Piece, keys: BufferLoad, values: BufferLoad) -> Attention:
    """Attention to the keys of one piece, which are counted from its start."""
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


def _is_supported(extent: Dim) -> bool:
    return isinstance(extent, int) and 0 < extent <= WIDEST


def _summed_over(stage: Stage) -> Axis | None:
    """The axis that `stage` sums over, if it is a sum over a single axis."""
    reduction = stage.reduction
    return (
        reduction.axes[0]
        if reduction and reduction.combine == "+" and len(reduction.axes) == 1
        else None
    )
