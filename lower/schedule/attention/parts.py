"""What the two schedules of attention have in common: runs cut in parts, scores, products."""

from dataclasses import dataclass

from relax_egraph.ir.dims import Dim
from relax_egraph.lower.schedule.attention.mask import Run
from relax_egraph.lower.schedule.attention.match import Attention
from relax_egraph.lower.schedule.loops import ZERO
from relax_egraph.lower.schedule.names import Names
from relax_egraph.tir.expr import Binary, BufferLoad, Imm, TirExpr, TirVar, binary, from_dim
from relax_egraph.tir.stmt import For, IfThenElse, LoopKind, Stmt, TensorIntrinsic

Values = dict[TirVar, TirExpr]
"""What the variables of axes are."""

Operand = tuple[BufferLoad, Dim, Dim]
"""Where a matrix begins, and how far a row and a column go in memory."""


@dataclass(frozen=True, slots=True)
class Parts:
    """A run cut in parts: the loop over them, where one begins, and how long it is.

    There is no loop (`var` is ``None``) if there is one part.
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
        """`body` for each part."""
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
    """How much room a run of `extent` needs in parts of `size`."""
    return min(extent, size) if isinstance(extent, int) else size


def multiply(
    a: Operand, b: Operand, c: Operand, size: tuple[TirExpr, TirExpr, TirExpr], *, adds: TirExpr
) -> Stmt:
    """``c = a · b``, or ``c + a · b`` where `adds` is 1, of so many rows, columns and steps.

    `b` and `c` are contiguous along their columns.
    """
    places = tuple((x.buffer, x.indices) for x, _, _ in (a, b, c))
    strides = map(from_dim, (a[1], a[2], b[1], c[1]))
    return TensorIntrinsic("gemm_tile", places, (*strides, *size, adds, ZERO))


def within(run: Run, keys: Parts) -> Run:
    """`run` counted from where a block of `keys` begins, and no farther than it goes."""

    def inside(bound: TirExpr) -> TirExpr:
        return binary("max", ZERO, binary("min", keys.count, bound - keys.start))

    return Run(run.first and inside(run.first), run.end and inside(run.end))


def where_seen(p: Attention, first: TirExpr, last: TirExpr, keys: Parts, body: Stmt) -> Stmt:
    """`body`, if a block of `keys` is seen by one of the queries from `first` to `last`."""
    begin, end = p.seen.at(p.at(first)).first, p.seen.at(p.at(last)).end
    before = end and Binary("<", keys.start, end)
    after = begin and Binary("<", begin, keys.start + keys.count)
    sees = Binary("and", before, after) if before and after else before or after
    return IfThenElse(sees, body) if sees else body
