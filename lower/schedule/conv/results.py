"""The stores of a convolution: its epilogue, computed from a tile that is still hot."""

from collections.abc import Callable
from dataclasses import dataclass

from relax_egraph.lower.schedule.conv.parts import Size, along, serial, transpose
from relax_egraph.lower.schedule.epilogue import Point, stores_at
from relax_egraph.lower.schedule.loops import ZERO
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.stages import Stage
from relax_egraph.tir.expr import Buffer, BufferLoad, TirExpr, TirVar
from relax_egraph.tir.rewrite import substitute
from relax_egraph.tir.stmt import Stmt, TirBlock, seq


@dataclass(frozen=True, slots=True)
class Results:
    """The stores of each element: the stages that follow the convolution, perhaps with itself.

    `values` are those of axes that are not in a point, as functions of those that are.
    """

    stage: Stage
    feature: TirVar
    rest: tuple[Stage, ...]
    is_output: bool
    values: Point

    @property
    def features_last(self) -> bool:
        """Whether the features of a position are adjacent."""
        return self.stage.indices[-1] is self.feature

    def of(self, element: TirExpr, point: Point) -> Stmt:
        """The stores for the `element` of the convolution at `point`."""
        values = {v: substitute(value, point) for v, value in self.values.items()}
        values.update(point)
        return stores_at(values, self.stage, element, self.rest, is_output=self.is_output)

    def of_tile(
        self,
        corner: BufferLoad,
        size: Size,
        point: Callable[[TirExpr, TirExpr], Point],
        names: Names,
    ) -> Stmt:
        """The stores for a tile of positions by features that begins at `corner`.

        `point` maps a row and a column of the tile to the point.  If the positions of a feature are
        adjacent, the tile is transposed first.
        """
        row, column = names.var("r"), names.var("j")
        rows, columns = size
        tile, before = corner.buffer, corner.indices[:-2]
        if self.features_last:
            body = self.of(tile[(*before, row, column)], point(row, column))
            return serial([(row, rows)], along(column, columns, body))
        height, width = tile.shape[-2:]
        transposed = Buffer(names.fresh("turned"), (width, height), "float32", tile.scope)
        turn = transpose(corner, transposed[ZERO, ZERO], (width, height), size)
        body = self.of(transposed[column, row], point(row, column))
        stores = serial([(column, columns)], along(row, rows, body))
        return TirBlock("turned", (), seq(turn, stores), allocs=(transposed,))
