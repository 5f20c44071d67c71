"""Lines of data: the part under the windows of a block of columns, in the nearest cache."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod

from relax_egraph.ir.dtypes import TABLE
from relax_egraph.lower.schedule.conv.parts import along, let, serial
from relax_egraph.lower.schedule.cut import Cut, cut
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.pool.windows import Pool, Window
from relax_egraph.lower.schedule.stages import Axis
from relax_egraph.tir.expr import Binary, Buffer, Imm, TirExpr, TirVar, as_expr, binary
from relax_egraph.tir.stmt import Stmt

ELEMENTS = 1 << 12
"""The maximal elements of a line, unless a single window needs more."""

INNER = 256
"""The maximal neighbours along the inner axis in a line; 64 if their number is not constant."""

VECTOR = 512
"""The bits of the widest vector."""

Place = Sequence[TirExpr]
"""A column of a line, and a place along the inner axis if there is one."""


@dataclass(frozen=True, slots=True)
class Line:
    """A block of `columns` of a row of results, and blocks of the `inner` axes, if any.

    `rows` are the values of the axes before them.
    """

    pool: Pool
    names: Names
    rows: Mapping[TirVar, TirExpr]
    columns: Cut
    inner: tuple[Cut, ...]

    def buffer(self, name: str, columns: int) -> Buffer:
        """A local buffer of `columns` columns."""
        shape = (columns, *(max(1, blocks.size) for blocks in self.inner))
        return Buffer(self.names.fresh(name), shape, self.pool.stage.buffer.dtype, "local")

    def over(self, columns: TirExpr, body: Callable[[Place], Stmt]) -> Stmt:
        """Loops of `body` over `columns` columns and all inner axes, the last one vectorized."""
        extents = (columns, *(blocks.count for blocks in self.inner))
        loops = [(self.names.var("x"), extent) for extent in extents]
        *outer, (last, extent) = loops
        return serial(outer, along(last, extent, body([var for var, _ in loops])))

    def combined(self, terms: Iterable[TirExpr]) -> TirExpr:
        """The reduction of `terms`."""
        return reduce(lambda a, b: Binary(self.pool.reduction.combine, a, b), terms)

    def named(self, value: TirExpr, body: Callable[[TirExpr], Stmt]) -> Stmt:
        """`body` of `value`, which is computed once."""
        if isinstance(value, Imm):
            return body(value)
        var = self.names.var("x")
        return let([var], [value], body(var))

    def inside(self, place: Place) -> dict[TirVar, TirExpr]:
        """The values of the inner axes."""
        pairs = zip(self.pool.inner, self.inner, place[1:], strict=True)
        return {axis.var: binary("+", blocks.start, k) for axis, blocks, k in pairs}

    @property
    def is_apart(self) -> bool:
        """Whether the data of neighbours in a vector is not contiguous."""
        return not self.inner and self.pool.along.stride > 1

    def whole(self, columns: int) -> int:
        """At least `columns` columns: if they are strided, whole vectors, which need no mask."""
        if not self.is_apart:
            return columns
        lanes = VECTOR // max(8, TABLE[self.pool.stage.buffer.dtype].bits)
        return -(-columns // lanes) * lanes

    def all_whole(self, count: TirExpr) -> TirExpr:
        """`whole` of a number of columns that is perhaps not constant."""
        if isinstance(count, Imm):
            return as_expr(self.whole(int(count.value)))
        lanes = self.whole(1)
        return binary("+", count, lanes - 1) // lanes * lanes

    def under(self, columns: TirExpr) -> TirExpr:
        """The number of places under the windows of so many columns of results."""
        w = self.pool.along
        return binary("+", binary("-", columns, 1) * w.stride, w.reach)


def line_of(pool: Pool, names: Names) -> tuple[Line, tuple[Axis, ...]]:
    """A line of `pool`, and the loops over all lines."""
    rows, values = names.renamed(pool.rows, "i")
    inner = tuple(_inner(pool, names))
    columns = _columns(pool.along, prod(max(1, blocks.size) for blocks in inner))
    blocks = cut(pool.along.position.extent, columns, "q", names)
    axes = (*rows, *blocks.blocks, *(axis for own in inner for axis in own.blocks))
    return Line(pool, names, values, blocks, inner), axes


def _inner(pool: Pool, names: Names) -> Iterator[Cut]:
    for axis in pool.inner:
        size = INNER if isinstance(axis.extent, int) else INNER // 4
        yield cut(axis.extent, size, "o", names)


def _columns(w: Window, depth: int) -> int:
    """The number of results of a line, about the same for all lines."""
    most = max(1, (ELEMENTS // depth - w.reach) // w.stride + 1)
    extent = w.position.extent
    return -(-extent // -(-extent // most)) if isinstance(extent, int) and extent > 0 else most
