"""Sorting of rows as statements: a merge sort, or a selection of the first few elements.

Both order positions in the row, and both are stable.
"""

from collections.abc import Callable
from dataclasses import dataclass

from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import computed, is_float
from relax_egraph.tir import te
from relax_egraph.tir.expr import Buffer, TirExpr, TirVar, from_dim
from relax_egraph.tir.scalar import greatest, least
from relax_egraph.tir.stmt import For, IfThenElse, LoopKind, Stmt, Store, seq

STRETCH = 128
"""The elements of a long row that are skipped together if none of them is among the first."""

RUN = 32
"""The elements that are sorted by counting, for each, the elements before it."""

_MOST_PASSES = 58
"""The maximal number of passes: each doubles the length of sorted runs."""

_ZERO, _ONE = te.const(0, "int64"), te.const(1, "int64")
_CURSORS = ("left", "right", "taken", "here")


@dataclass(frozen=True, slots=True)
class Row:
    """A row of `extent` elements, ``element(place)`` each; NaN comes last in either order."""

    extent: Dim
    element: Callable[[TirExpr], TirExpr]
    descending: bool

    def key(self, place: TirExpr) -> TirExpr:
        """The element at `place` in a dtype that can be compared."""
        element = self.element(place)
        return te.cast(element, "uint8" if element.dtype == "bool" else computed(element.dtype))

    def before(self, a: TirExpr, b: TirExpr) -> TirExpr:
        """Whether key `a` comes before `b`, regardless of their positions."""
        is_before = a > b if self.descending else a < b
        if not is_float(a.dtype):
            return is_before
        return te.logical_or(is_before, te.logical_and(te.not_equal(b, b), te.equal(a, a)))


@dataclass(frozen=True, slots=True)
class Order:
    """A sorted row: after `body`, ``places(rank)`` is the position of the element of each rank."""

    body: Stmt
    places: Callable[[TirExpr], TirExpr]
    buffers: tuple[Buffer, ...]


def loop(
    name: str, extent: TirExpr, body: Callable[[TirVar], Stmt], kind: LoopKind = "serial"
) -> Stmt:
    """A loop of `body` over a variable from 0 to `extent`."""
    var = TirVar(name)
    return For(var, extent, kind, body(var))


def merged(row: Row) -> Order:
    """All elements in order, by merge sort: short runs, then runs of twice the length in each pass.

    A merge selects from either run without a branch, which would be mispredicted half of the time.
    Keys move with their positions, between the two halves of the buffers.
    """
    count = from_dim(row.extent)
    keys = Buffer("keys", (2, row.extent), row.key(_ZERO).dtype, "local")
    runs = Buffer("runs", (2, row.extent), "int64", "local")
    left, right, from_right, here = (Buffer(n, (1,), "int64", "local") for n in _CURSORS)
    before = Buffer("before", (1,), "int32", "local")  # as wide as keys of 32 bits

    def move(source: TirExpr, to: TirExpr) -> Stmt:
        target = (1 - here[0], to)
        return seq(
            Store(keys, target, keys[here[0], source]), Store(runs, target, runs[here[0], source])
        )

    def merge(width: TirExpr, number: TirVar) -> Stmt:
        begin = number * width * 2
        middle, end = te.minimum(begin + width, count), te.minimum(begin + width * 2, count)
        ahead, behind = (keys[here[0], te.minimum(run[0], count - 1)] for run in (left, right))
        is_right = te.logical_and(right[0] < end, row.before(behind, ahead))
        takes_right = te.logical_or(left[0] >= middle, is_right)

        def step(number: TirVar) -> Stmt:
            return seq(
                Store(from_right, (_ZERO,), te.cast(takes_right, "int64")),
                move(te.select(te.equal(from_right[0], 1), right[0], left[0]), begin + number),
                Store(right, (_ZERO,), right[0] + from_right[0]),
                Store(left, (_ZERO,), left[0] + 1 - from_right[0]),
            )

        start = seq(Store(left, (_ZERO,), begin), Store(right, (_ZERO,), middle))
        return seq(start, loop("t", end - begin, step))

    def double(number: TirVar) -> Stmt:
        width = te.shift_left(te.const(RUN, "int64"), number)
        pairs = (count + width * 2 - 1) // (width * 2)
        swap = Store(here, (_ZERO,), 1 - here[0])
        return IfThenElse(width < count, seq(loop("b", pairs, lambda b: merge(width, b)), swap))

    def short(number: TirVar) -> Stmt:
        begin = number * RUN
        size = te.minimum(count - begin, RUN)

        def rank(place: TirVar) -> Stmt:
            def counted(other: TirVar) -> Stmt:
                mine, theirs = keys[0, begin + place], keys[0, begin + other]
                ahead = te.select(
                    other < place,
                    te.logical_not(row.before(mine, theirs)),
                    row.before(theirs, mine),
                )
                return Store(before, (_ZERO,), before[0] + te.cast(ahead, "int32"))

            return seq(
                Store(before, (_ZERO,), te.const(0, "int32")),
                loop("o", size, counted, "vectorized"),
                move(begin + place, begin + te.cast(before[0], "int64")),
            )

        return loop("j", size, rank)

    passes = (-(-row.extent // RUN)).bit_length() if isinstance(row.extent, int) else _MOST_PASSES
    body = seq(
        loop("j", count, lambda j: Store(keys, (_ZERO, j), row.key(j)), "vectorized"),
        loop("j", count, lambda j: Store(runs, (_ZERO, j), j), "vectorized"),
        Store(here, (_ZERO,), _ZERO),
        loop("b", (count + RUN - 1) // RUN, short),
        Store(here, (_ZERO,), _ONE),
        loop("p", te.const(passes, "int64"), double),
    )
    buffers = (keys, runs, left, right, from_right, here, before)
    return Order(body, lambda rank: runs[here[0], rank], buffers)


def first_few(row: Row, k: int) -> Order:
    """The first `k` elements in order, which are kept sorted while the row is read once.

    A stretch of a long row is skipped if its extreme comes after all kept elements.
    """
    count = from_dim(row.extent)
    dtype = row.key(_ZERO).dtype
    best, where = Buffer("best", (k,), dtype, "local"), Buffer("where", (k,), "int64", "local")
    rank = Buffer("rank", (1,), "int64", "local")

    def insert(number: TirExpr) -> Stmt:
        position = te.minimum(number, k - 1)

        def shift(step: TirVar) -> Stmt:
            to = position - step
            swap = seq(
                Store(best, (to,), best[to - 1]),
                Store(where, (to,), where[to - 1]),
                Store(rank, (_ZERO,), to - 1),
            )
            return IfThenElse(row.before(row.key(number), best[to - 1]), swap)

        return seq(
            Store(rank, (_ZERO,), position),
            loop("s", position, shift),
            Store(best, (rank[0],), row.key(number)),
            Store(where, (rank[0],), number),
        )

    def visit(number: TirExpr) -> Stmt:
        is_first = row.before(row.key(number), best[k - 1])
        return IfThenElse(te.logical_or(number < k, is_first), insert(number))

    if isinstance(row.extent, int) and row.extent <= STRETCH:
        return Order(loop("j", count, visit), lambda r: where[r], (best, where, rank))
    top = Buffer("top", (1,), dtype, "local")
    join = te.maximum if row.descending else te.minimum
    worst = least(dtype) if row.descending else greatest(dtype)

    def stretch(number: TirVar) -> Stmt:
        begin = number * STRETCH
        size = te.minimum(count - begin, STRETCH)

        def extreme(j: TirVar) -> Stmt:
            return Store(top, (_ZERO,), join(top[0], row.key(begin + j)))

        # A stretch with NaN is not skipped, since NaN compares false.
        is_after = best[k - 1] >= top[0] if row.descending else best[k - 1] <= top[0]
        may_have_one = te.logical_or(begin < k, te.logical_not(is_after))
        return seq(
            Store(top, (_ZERO,), te.const(worst, dtype)),
            loop("j", size, extreme, "vectorized"),
            IfThenElse(may_have_one, loop("j", size, lambda j: visit(begin + j))),
        )

    body = loop("b", (count + STRETCH - 1) // STRETCH, stretch)
    return Order(body, lambda r: where[r], (best, where, rank, top))
