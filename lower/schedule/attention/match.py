"""Recognises attention among the stages: scores of queries and keys, their softmax, its product.

It is read from the end.  What is computed element by element in between is put together to one
expression: the score of a query and a key, a map of their product.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.schedule.attention.mask import Run, split_mask
from relax_egraph.lower.schedule.loops import ZERO
from relax_egraph.lower.schedule.stages import Axis, Combine, Stage
from relax_egraph.tir.analysis import tree_size, work
from relax_egraph.tir.expr import Binary, Buffer, BufferLoad, Imm, Intrinsic, TirExpr, TirVar
from relax_egraph.tir.rewrite import loads, rewrite, substitute, variables

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
    last, reader = stages[-1], _Reader(stages)
    over = _summed_over(last)
    if over is None or not any(last.buffer is b for b in outputs):
        return None
    match reader.written_out(last.value):
        case Binary(kind="*", a=a, b=b):
            found = _matched(reader, over, a, b) or _matched(reader, over, b, a)
        case _:
            return None
    own = {last.buffer, *(s.buffer for s in found.before)} if found else set[Buffer]()
    return found if own.issuperset(outputs) else None


def _matched(reader: "_Reader", key: Axis, shares: TirExpr, values: TirExpr) -> Attention | None:
    match shares, values:
        case (
            Binary(
                kind="/",
                a=Intrinsic(
                    name="exp", args=(Binary(kind="-", a=score, b=BufferLoad() as top),)
                ) as power,
                b=BufferLoad() as total,
            ),
            BufferLoad(),
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
        case Binary(kind="*", a=BufferLoad() as x, b=BufferLoad() as y):
            queries, keys = (y, x) if key.var in variables(x) else (x, y)
        case _:
            return None
    if depth is None or key.var not in variables(keys) or key.var in variables(queries):
        return None
    return _over_axes(reader, key, depth, (queries, keys, values), product, score)


def _over_axes(
    reader: "_Reader",
    key: Axis,
    depth: Axis,
    operands: tuple[BufferLoad, BufferLoad, BufferLoad],
    product: BufferLoad,
    score: TirExpr,
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
    buffers = (last.buffer, product.buffer, *(o.buffer for o in operands))
    if any(b.dtype != "float32" or 0 in b.shape for b in buffers):
        return None
    out = substitute(BufferLoad(last.buffer, last.indices), reader.unit)
    assert isinstance(out, BufferLoad)
    before = reader.needed([*operands, *(load for load in loads(score) if load != product)])
    if before is None:
        return None
    seen, score = split_mask(score, row.var if row else None, key.var)
    return Attention(
        before=before,
        out=out,
        batch=tuple(a for a in spatial if a is not column and a is not row),
        row=row,
        key=key,
        depth=depth,
        column=column,
        queries=queries,
        keys=keys,
        values=values,
        product=product,
        score=score,
        seen=seen,
    )


def _is_some(extent: Dim) -> bool:
    return isinstance(extent, int) and 0 < extent <= WIDEST


def _summed_over(stage: Stage) -> Axis | None:
    """The one axis that `stage` sums over, if it is a sum of one axis."""
    found = stage.reduction
    return found.axes[0] if found and found.combine == "+" and len(found.axes) == 1 else None


class _Reader:
    """Writes out what stages compute, down to inputs and to the reductions in between."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self.stages = {s.buffer: s for s in stages}
        self.last = stages[-1]
        self.unit: dict[TirVar, TirExpr] = {a.var: ZERO for a in self.last.axes if a.extent == 1}
        self._chained: set[Buffer] = set()
        for s in stages:
            if s.reduction or any(load.buffer in self._chained for load in loads(s.value)):
                self._chained.add(s.buffer)

    def is_chained(self, load: BufferLoad) -> bool:
        """Whether `load` reads a reduction, or what is computed of one."""
        return load.buffer in self._chained

    def written_out(self, value: TirExpr) -> TirExpr:
        """`value` with elements replaced by what they are, where that is cheap or depends on sums.

        Axes of the last stage that have one element are at 0.
        """

        def change(e: TirExpr) -> TirExpr:
            stage = self.stages.get(e.buffer) if isinstance(e, BufferLoad) else None
            if stage is None or stage.reduction is not None:
                return e
            if stage.buffer not in self._chained and work(stage.value) > 0:
                return e
            assert isinstance(e, BufferLoad)
            at = {a.var: i for a, i in zip(stage.axes, e.indices, strict=True)}
            return self.written_out(substitute(stage.value, at))

        return rewrite(substitute(value, self.unit), change)

    def reduced(
        self, load: BufferLoad, combine: Combine, init: float, over: Axis
    ) -> TirExpr | None:
        """What `load` is the reduction of, over `over`; ``None`` if it is no such reduction."""
        stage = self.stages.get(load.buffer)
        if stage is None or stage.reduction is None or len(stage.reduction.axes) != 1:
            return None
        (own,) = stage.reduction.axes
        begin = stage.reduction.init
        if stage.reduction.combine != combine or not isinstance(begin, Imm) or begin.value != init:
            return None
        if not dims.equal(own.extent, over.extent):
            return None
        at = {a.var: i for a, i in zip(stage.axes, load.indices, strict=True)}
        return self.written_out(substitute(stage.value, {**at, own.var: over.var}))

    def needed(self, reads: Sequence[BufferLoad]) -> tuple[Stage, ...] | None:
        """The stages to compute for `reads`, in order; ``None`` if one is computed of a sum."""
        wanted = {load.buffer for load in reads}
        for stage in reversed(self.stages.values()):
            if stage.buffer in wanted:
                wanted.update(load.buffer for load in loads(stage.value))
        if not wanted.isdisjoint(self._chained):
            return None
        return tuple(s for s in self.stages.values() if s.buffer in wanted)
