"""The state of the softmax of each query, from one block of keys to the next.

A row begins with a maximum of -∞ and sums of 0.  At the end the sums of values are divided by the
sum of powers.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from relax_egraph.lower.schedule.attention.match import Attention
from relax_egraph.lower.schedule.attention.parts import Parts, Values, number
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.product import bound_load
from relax_egraph.tir.expr import Binary, Buffer, Imm, Select, TirExpr, binary, from_dim
from relax_egraph.tir.stmt import For, IfThenElse, Stmt, Store, seq

LOW = Imm(-math.inf, "float32")
NONE = Imm(0.0, "float32")
ONE = Imm(1.0, "float32")


@dataclass(frozen=True, slots=True)
class State:
    """The maximum score of each row, its sum of powers, and its sums of values.

    The sums of values start at 0 if it `is_clear`, else with the first block.  The buffers have the
    leading indices `at`, if any.
    """

    top: Buffer
    total: Buffer
    values: Buffer
    is_clear: bool
    at: tuple[TirExpr, ...] = ()

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The three buffers."""
        return self.top, self.total, self.values

    @property
    def width(self) -> TirExpr:
        """The number of elements of a value."""
        return from_dim(self.values.shape[-1])

    @property
    def most_rows(self) -> int:
        """The maximal number of rows."""
        rows = self.top.shape[-1]
        assert isinstance(rows, int)
        return rows

    def place(self, row: TirExpr) -> tuple[TirExpr, ...]:
        """The indices of the state of `row`."""
        return (*self.at, row)


@dataclass(frozen=True, slots=True)
class Row:
    """A row: its number, and the values of the variables of axes."""

    number: TirExpr
    point: Values


EachRow = Callable[[Callable[[Row], Stmt]], Stmt]
"""Creates loops over rows."""


def state_of(rows: int, width: int, names: Names, *, is_clear: bool) -> State:
    """Buffers for the state of `rows` rows."""
    top, total = (room(name, names, rows) for name in ("top", "total"))
    return State(top, total, room("values", names, rows, width), is_clear)


def room(name: str, names: Names, *shape: int) -> Buffer:
    """A local float32 buffer."""
    return Buffer(names.fresh(name), shape, "float32", "local")


def begin(p: Attention, state: State, rows: TirExpr, names: Names) -> Stmt:
    """Initialize the state; for an empty set of keys, the result is 0."""
    r, i, e = names.var("r"), names.var("r"), names.var("e")
    total: TirExpr = NONE
    clear: Stmt = For(e, state.width, "vectorized", Store(state.values, (*state.place(i), e), NONE))
    clear = For(i, rows, "serial", clear)
    if not isinstance(p.key.extent, int):
        is_empty = from_dim(p.key.extent) < 1
        total = Select(is_empty, ONE, NONE)
        clear = clear if state.is_clear else IfThenElse(is_empty, clear)
    elif not state.is_clear:
        clear = seq()
    heads = seq(Store(state.top, state.place(r), LOW), Store(state.total, state.place(r), total))
    return seq(For(r, rows, "vectorized", heads), clear)


def goes_on(state: State, keys: Parts) -> TirExpr:
    """1 if the sums of values exist before a block of `keys`, else 0."""
    return number(1) if state.is_clear else binary("min", 1, keys.place)


def end(p: Attention, state: State, rows: TirExpr, each: EachRow, names: Names) -> Stmt:
    """Store the results of the rows."""
    r, e = names.var("r"), names.var("e")
    inverse = Store(state.total, (r,), Binary("/", ONE, state.total[r]))

    def stored(row: Row) -> Stmt:
        place = bound_load(p.out, {**row.point, p.column.var: e})
        value = Binary("*", state.values[row.number, e], state.total[row.number])
        return For(e, state.width, "vectorized", Store(place.buffer, place.indices, value))

    return seq(For(r, rows, "vectorized", inverse), each(stored))
