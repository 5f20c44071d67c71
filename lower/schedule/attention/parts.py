"""The common parts of both schedules of attention: runs in parts, scores, products."""

from dataclasses import dataclass

from relax_egraph.ir.dims import Dim
from relax_egraph.lower.intrinsics.row import strip_columns
from relax_egraph.lower.schedule.attention.mask import Run
from relax_egraph.lower.schedule.attention.match import Attention
from relax_egraph.lower.schedule.loops import ZERO
from relax_egraph.lower.schedule.names import Names
from relax_egraph.tir.expr import Binary, BufferLoad, Imm, TirExpr, TirVar, binary, from_dim
from relax_egraph.tir.stmt import For, IfThenElse, LoopKind, Stmt, TensorIntrinsic

Values = dict[TirVar, TirExpr]
"""The values of the variables of axes."""

Operand = tuple[BufferLoad, Dim, Dim]
"""The start of a matrix, and the strides of its rows and columns."""


@dataclass(frozen=True, slots=True)
class Parts:
    """A run in parts: the loop over them, the start of a part, and its length.

    A single part has no loop (`var` is ``None``).
    """

    var: TirVar | None
    number: TirExpr
    start: TirExpr
    count: TirExpr

    @property
    def place(self) -> TirExpr:
        """The number of the part."""
        return self.var or ZERO

    def around(self, body: Stmt, kind: LoopKind = "serial") -> Stmt:
        """A loop of `body` over the parts."""
        return For(self.var, self.number, kind, body) if self.var else body


def parts(length: TirExpr, size: int, name: str, names: Names) -> Parts:
    """A run of `length` in parts of `size`, the last one shorter."""
    if isinstance(length, Imm) and length.value <= size:
        return Parts(None, number(1), ZERO, length)
    var = names.var(name)
    is_even = isinstance(length, Imm) and length.value % size == 0
    count = number(size) if is_even else binary("min", size, length - var * size)
    return Parts(var, (length + (size - 1)) // size, var * size, count)


def number(value: int) -> Imm:
    """`value` as a literal."""
    return Imm(value, "int64")


def at_most(extent: Dim, size: int) -> int:
    """The memory that a run of `extent` needs in parts of `size`, in elements."""
    return min(extent, size) if isinstance(extent, int) else size


def multiply(
    a: Operand, b: Operand, c: Operand, size: tuple[TirExpr, TirExpr, TirExpr], *, adds: TirExpr
) -> Stmt:
    """``c = a · b``, or ``c + a · b`` if `adds` is 1, for `size` rows, columns and steps.

    `b` and `c` are contiguous along their columns.
    """
    places = tuple((x.buffer, x.indices) for x, _, _ in (a, b, c))
    strides = map(from_dim, (a[1], a[2], b[1], strip_columns("float32"), c[1]))
    return TensorIntrinsic("gemm_tile", places, (*strides, *size, adds, ZERO))


def within(run: Run, keys: Parts) -> Run:
    """`run`, relative to the start of a block of `keys` and clamped to it."""

    def inside(bound: TirExpr) -> TirExpr:
        return binary("max", ZERO, binary("min", keys.count, bound - keys.start))

    return Run(run.first and inside(run.first), run.end and inside(run.end))


def where_seen(p: Attention, first: TirExpr, last: TirExpr, keys: Parts, body: Stmt) -> Stmt:
    """`body`, on condition that a query from `first` to `last` sees a key of the block `keys`."""
    begin, end = p.seen.at(p.at(first)).first, p.seen.at(p.at(last)).end
    before = end and Binary("<", keys.start, end)
    after = begin and Binary("<", begin, keys.start + keys.count)
    sees = Binary("and", before, after) if before and after else before or after
    return IfThenElse(sees, body) if sees else body
