"""Epilogues: stages that are computed from each element of a product while it is at hand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from relax_egraph.lower.schedule.cut import Cut
from relax_egraph.lower.schedule.loops import bound
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.product import Product
from relax_egraph.lower.schedule.stages import Stage
from relax_egraph.tir.expr import Buffer, BufferLoad, TirExpr, TirVar
from relax_egraph.tir.rewrite import rewrite
from relax_egraph.tir.stmt import For, Stmt, Store, seq

Point = Mapping[TirVar, TirExpr]
"""The values of variables of axes."""


def stores_at(
    point: Point, anchor: Stage, element: TirExpr, rest: Sequence[Stage], *, is_output: bool
) -> Stmt:
    """The stores of the stages `rest` at `point`, where `anchor` computes `element`.

    If the anchor `is_output`, its own store is included.
    """
    own = replace(anchor, value=BufferLoad(anchor.buffer, anchor.indices), reduction=None)
    stages = [bound(s, dict(point)) for s in ((own, *rest) if is_output else rest)]

    def replace_element(e: TirExpr) -> TirExpr:
        return element if isinstance(e, BufferLoad) and e.buffer is anchor.buffer else e

    return seq(*(Store(s.buffer, s.indices, rewrite(s.value, replace_element)) for s in stages))


@dataclass(frozen=True, slots=True)
class Epilogue:
    """The stages that follow a product, element by element, perhaps with the product itself."""

    product: Product
    rest: tuple[Stage, ...]
    is_output: bool

    def on(self, source: BufferLoad, point: Point) -> Stmt:
        """The stores for the element at `point`, which a tile contains at `source`."""
        p = self.product
        values = {**p.values, **point}
        return stores_at(values, p.stage, source, self.rest, is_output=self.is_output)

    def over(self, tile: Buffer, rows: Cut, columns: Cut, batch: Point, names: Names) -> Stmt:
        """The stores for a block whose elements are in `tile`."""
        i, j = names.var("i"), names.var("j")
        point = {**batch, **self.product.point(rows.start + i, columns.start + j)}
        inner = For(j, columns.count, "vectorized", self.on(tile[i, j], point))
        return For(i, rows.count, "serial", inner)
