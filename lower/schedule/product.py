"""Recognition of matrix products among the stages, by the strides of their operands."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import TABLE
from relax_egraph.lower.library.products import NARROW, TILED
from relax_egraph.lower.schedule.index import looked_up, steps
from relax_egraph.lower.schedule.inline import inline
from relax_egraph.lower.schedule.loops import bound, collapse
from relax_egraph.lower.schedule.stages import Axis, Stage
from relax_egraph.tir.expr import Binary, Buffer, BufferLoad, Cast, TirExpr, TirVar
from relax_egraph.tir.rewrite import substitute

FEWEST_TRANSPOSED = 8
"""The minimal rows for which copying a right operand that is not contiguous pays."""


FEWEST_STEPS = 8
"""The minimal depth of a sum of products that is computed by the micro-kernel."""


@dataclass(frozen=True, slots=True)
class Product:
    """``buffer[indices] = Σ a · b`` over `depth`, for each point of `batch`, `row` and `column`.

    All are of one dtype of `TILED`, except that `b` of a float32 product may be `NARROW`.  `row` is
    ``None`` for a single row, `depth` for a depth of 1.  `a` does not depend on `column`, nor `b`
    on `row`.  The result is contiguous along `column`; `a_row`, `a_step`, `b_step`, `b_column` and
    `c_row` are the strides of rows, steps of the depth and columns.  `values` are the axes of the
    stage without a loop.  The sum may also be `over` further nonempty axes.
    """

    stage: Stage
    values: dict[TirVar, TirExpr]
    batch: tuple[Axis, ...]
    row: Axis | None
    column: Axis
    depth: Axis | None
    a: BufferLoad
    b: BufferLoad
    a_row: Dim
    a_step: Dim
    b_step: Dim
    b_column: Dim
    c_row: Dim
    over: tuple[Axis, ...] = ()

    @property
    def dtype(self) -> str:
        """The dtype of the product."""
        return self.stage.buffer.dtype

    @property
    def bits(self) -> int:
        """The bits of an element of the product."""
        return TABLE[self.dtype].bits

    def point(self, row: TirExpr, column: TirExpr) -> dict[TirVar, TirExpr]:
        """The values of the variables for a row and a column."""
        rows = {self.row.var: row} if self.row else {}
        return {**rows, self.column.var: column}

    def right(self, point: Mapping[TirVar, TirExpr]) -> TirExpr:
        """The element of the right operand at `point`, in the dtype of the product."""
        load = bound_load(self.b, dict(point))
        return load if load.buffer.dtype == self.dtype else Cast(self.dtype, load)

    def at_depth(self, step: TirExpr) -> dict[TirVar, TirExpr]:
        """The value of the variable of the depth, if it has one."""
        return {self.depth.var: step} if self.depth else {}


def match_product(stage: Stage, rest: Sequence[Stage] = ()) -> Product | None:
    """`stage` as one product of matrices of one dtype; its axes collapse as far as `rest` allows.

    The stages `rest` have the same axes as `stage`.
    """
    product = match_contraction(stage, rest)
    if product is None or product.over or product.b.buffer.dtype in NARROW:
        return None
    return product


def match_contraction(stage: Stage, rest: Sequence[Stage] = ()) -> Product | None:
    """`stage` as a product or a sum of products `over` axes, perhaps with a narrow operand.

    Otherwise it is like `match_product`.
    """
    reduction = stage.reduction
    if reduction is None or not stage.sums or not isinstance(stage.value, Binary):
        return None
    if stage.buffer.dtype not in TILED:
        return None
    x, y = map(_source, (stage.value.a, stage.value.b))
    if stage.value.kind != "*" or x is None or y is None:
        return None
    if any(0 in b.shape for b in (stage.buffer, x.buffer, y.buffer)):
        return None  # strides of empty operands are meaningless
    spatial = collapse(stage.axes, [stage, *rest])
    over = collapse(reduction.axes, [stage])
    depth = _longest(over.axes)
    others = tuple(a for a in over.axes if a is not depth)
    if not spatial.axes or not all(dims.prove_ge(a.extent, 1) for a in others):
        return None
    if others and depth and isinstance(depth.extent, int) and depth.extent < FEWEST_STEPS:
        return None
    values = {**spatial.values, **over.values}
    stage = bound(stage, values)
    x, y = bound_load(x, values), bound_load(y, values)
    for a, b in ((x, y), (y, x)):
        if a.buffer.dtype in NARROW:
            continue
        if product := _oriented(stage, values, spatial.axes, depth, a, b):
            return replace(product, over=others)
    return None


def _source(operand: TirExpr) -> BufferLoad | None:
    """The load of a factor, or the load of a narrow element that it widens."""
    match operand:
        case BufferLoad():
            return operand
        case Cast(dtype="float32", value=BufferLoad(buffer=buffer) as load):
            return load if buffer.dtype in NARROW else None
        case _:
            return None


def with_narrow_operands(stages: Sequence[Stage], keep: Sequence[Buffer]) -> Sequence[Stage]:
    """`stages` with narrow right operands read in their storage dtype, by the products themselves.

    The buffers in `keep` are unchanged.
    """
    for wide in [s.buffer for s in stages if isinstance(s.value, Cast) and _source(s.value)]:
        users = [s.buffer for s in stages if s.reads(wide)]
        if not users or any(wide is b for b in keep):
            continue
        inlined = inline(stages, [s.buffer for s in stages if s.buffer is not wide])
        if all(match_contraction(s) for s in inlined if any(s.buffer is b for b in users)):
            stages = inlined
    return stages


def _longest(axes: Sequence[Axis]) -> Axis | None:
    """The longest axis, as far as extents are constant; the last one if there are several."""
    sizes = [a.extent if isinstance(a.extent, int) else math.inf for a in axes]
    return next((a for a, n in [*zip(axes, sizes, strict=True)][::-1] if n == max(sizes)), None)


def bound_load(load: BufferLoad, values: dict[TirVar, TirExpr]) -> BufferLoad:
    """`load` with variables replaced in its indices."""
    return BufferLoad(load.buffer, tuple(substitute(i, values) for i in load.indices))


def _oriented(
    stage: Stage,
    values: dict[TirVar, TirExpr],
    axes: tuple[Axis, ...],
    depth: Axis | None,
    a: BufferLoad,
    b: BufferLoad,
) -> Product | None:
    """The product with `a` as its left operand, if the strides fit.

    An axis that selects the matrix through a table, like ``i`` in ``b[table[i], k, j]``, belongs to
    the batch.
    """
    *others, column = axes
    fixed = looked_up((*a.indices, *b.indices))
    outer = [x for x in others if x.var not in fixed]
    variables = [x.var for x in (*outer, column, *((depth,) if depth else ()))]
    of_a = steps(a.buffer, a.indices, variables)
    of_b = steps(b.buffer, b.indices, variables)
    of_c = steps(stage.buffer, stage.indices, variables)
    if of_a is None or of_b is None or of_c is None:
        return None
    last = len(outer)
    if of_a[last] != 0 or of_b[last] == 0 or of_c[last] != 1:
        return None
    row = next((k for k in reversed(range(last)) if of_b[k] == 0), None)
    rows = 1 if row is None else outer[row].extent
    if of_b[last] != 1 and isinstance(rows, int) and rows < FEWEST_TRANSPOSED:
        return None
    return Product(
        stage=stage,
        values=values,
        batch=tuple(x for x in others if row is None or x is not outer[row]),
        row=None if row is None else outer[row],
        column=column,
        depth=depth,
        a=a,
        b=b,
        a_row=0 if row is None else of_a[row],
        a_step=of_a[-1] if depth else 0,
        b_step=of_b[-1] if depth else 0,
        b_column=of_b[last],
        c_row=0 if row is None else of_c[row],
    )
