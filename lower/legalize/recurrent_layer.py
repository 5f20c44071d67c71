"""The loops of a recurrent layer: over directions, over time, and over sequences.

Directions are independent.  The states of all sequences are in local buffers, in the dtype of the
arithmetic; they are rounded when stored in an output.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import computed
from relax_egraph.ir.ops.recurrence import DIRECTIONS
from relax_egraph.lower.legalize.loops import ZERO, around, free, loop_function, names_of
from relax_egraph.lower.legalize.proven import need_equal
from relax_egraph.tir import te
from relax_egraph.tir.expr import Buffer, TirExpr, TirVar, binary, from_dim
from relax_egraph.tir.stmt import (
    BlockAxis,
    For,
    IfThenElse,
    PrimFunc,
    Stmt,
    Store,
    TirBlock,
    seq,
)

At: TypeAlias = tuple[TirExpr, TirExpr]
"""The index of an element of a state: its sequence, and its place."""

Stores: TypeAlias = Callable[[At], Sequence[Stmt]]


@dataclass(frozen=True, slots=True)
class Operands:
    """The tensors of a layer of `gates` gates; `bias` and `lengths` may be absent."""

    gates: int
    projected: te.Tensor
    recurrence: te.Tensor
    states: tuple[te.Tensor, ...]
    lengths: te.Tensor | None
    direction: str
    bias: te.Tensor | None = None

    @property
    def tensors(self) -> tuple[te.Tensor, ...]:
        """All of them, in the order of the operator."""
        optional = (x for x in (self.bias, self.lengths) if x is not None)
        return (self.projected, self.recurrence, *self.states, *optional)

    def check(self) -> None:
        """Raise `NotLowerable` unless the extents are proven to agree."""
        count, (_, size, width) = DIRECTIONS[self.direction], self.recurrence.shape
        _, batch, whole = self.projected.shape
        need_equal(self.recurrence.shape, (count, size, dims.mul(size, self.gates)))
        need_equal((whole,), (dims.mul(width, count),))
        for x in self.states:
            need_equal(x.shape, (count, batch, size))
        if self.bias is not None:
            need_equal(self.bias.shape, (count, size))
        if self.lengths is not None:
            need_equal(self.lengths.shape, (batch,))


class Layer:
    """The buffers and variables of a layer; its `states` are those of the current direction."""

    def __init__(self, operands: Operands) -> None:
        operands.check()
        self.inputs = tuple(Buffer(x.name, x.shape, x.dtype) for x in operands.tensors)
        buffers = dict(zip(operands.tensors, self.inputs, strict=True))
        self.projected, self.recurrence = self.inputs[:2]
        self.first = tuple(buffers[x] for x in operands.states)
        self.bias = operands.bias and buffers[operands.bias]
        self.lengths = operands.lengths and buffers[operands.lengths]
        self.times, self.batch, _ = self.projected.shape
        _, self.size, self.width = self.recurrence.shape
        self.count = DIRECTIONS[operands.direction]
        self.dtype = computed(self.projected.dtype)
        self._used = names_of(*self.inputs)
        self.states = tuple(self.local(f"{x.name}_now", self.size) for x in self.first)
        several = self.count > 1
        self.direction: TirExpr = TirVar(free("d", self._used)) if several else ZERO
        self._turn = TirVar(free("t", self._used))
        self._reverse = operands.direction == "reverse"
        self._place = TirVar(free("p", self._used))

    def local(self, name: str, columns: Dim) -> Buffer:
        """A buffer with a row for each sequence."""
        return Buffer(free(name, self._used), (self.batch, columns), self.dtype, "local")

    def column(self, gate: int, at: At) -> TirExpr:
        """The column of an element of a gate."""
        return from_dim(dims.mul(self.size, gate)) + at[1]

    def input(self, gate: int, at: At) -> TirExpr:
        """The projected input of an element of a gate, at the current time."""
        column = self.direction * from_dim(self.width) + self.column(gate, at)
        return te.cast(self.projected[self._time, at[0], column], self.dtype)

    def product(self, out: Buffer, a: Buffer, gate: int) -> Stmt:
        """``out = a · recurrence``, of the columns from `gate` on."""
        extents = (self.batch, out.shape[1], self.size)
        loops, axes = ([TirVar(name) for name in names] for names in ("ijk", "bce"))
        i, j, k = axes
        column = from_dim(dims.mul(self.size, gate)) + j
        weight = te.cast(self.recurrence[self.direction, k, column], self.dtype)
        body = Store(out, (i, j), out[i, j] + a[i, k] * weight)
        init = Store(out, (i, j), te.const(0, self.dtype))
        block = TirBlock(
            "product",
            tuple(
                BlockAxis(axis, from_dim(extent), "reduce" if axis is k else "spatial", loop)
                for axis, extent, loop in zip(axes, extents, loops, strict=True)
            ),
            body,
            init,
        )
        return around([*zip(loops, extents, strict=True)], block)

    def running(self, stores: Stores, beyond: Stores | None = None) -> Stmt:
        """`stores` for each element of the states of sequences that have not ended, else `beyond`.

        All have the same time, unless they have lengths.
        """
        if self.lengths is None:
            return self._each(stores)
        i = TirVar("i")
        end = binary("min", self.lengths[i], from_dim(self.times))
        over = None if beyond is None else self._line(i, beyond)
        body = IfThenElse(self._turn < end, self._line(i, stores), over)
        place = BlockAxis(self._place, from_dim(self.times), "spatial", self._at(end))
        return around([(i, self.batch)], TirBlock("sequence", (place,), body))

    def function(
        self, name: str, turn: Sequence[Stmt], next_states: Stores, scratch: tuple[Buffer, ...]
    ) -> PrimFunc:
        """The function that runs `turn` and `next_states` for all times of each direction."""
        shape = (self.times, self.batch, dims.mul(self.size, self.count))
        out = Buffer(free(name, self._used), shape, self.projected.dtype)
        last = [Buffer(free(f"{x.name}_last", self._used), x.shape, x.dtype) for x in self.first]

        def output(time: TirExpr, at: At, value: TirExpr) -> Stmt:
            column = self.direction * from_dim(self.size) + at[1]
            return Store(out, (time, at[0], column), te.cast(value, out.dtype))

        def step(at: At) -> Sequence[Stmt]:
            return [*next_states(at), output(self._time, at, self.states[0][at])]

        def zero(at: At) -> Sequence[Stmt]:
            return [output(self._turn, at, te.const(0, self.dtype))]

        def begin(at: At) -> Sequence[Stmt]:
            pairs = zip(self.states, self.first, strict=True)
            return [Store(s, at, te.cast(x[self.direction, *at], s.dtype)) for s, x in pairs]

        def end(at: At) -> Sequence[Stmt]:
            pairs = zip(self.states, last, strict=True)
            return [Store(x, (self.direction, *at), te.cast(s[at], x.dtype)) for s, x in pairs]

        body = seq(*turn, self.running(step, zero))
        loop = For(self._turn, from_dim(self.times), "serial", body)
        allocs = (*self.states, *scratch)
        whole: Stmt = TirBlock(
            name, (), seq(self._each(begin), loop, self._each(end)), allocs=allocs
        )
        if isinstance(self.direction, TirVar):
            whole = around([(self.direction, self.count)], whole, "parallel")
        return loop_function((*self.inputs, out, *last), whole, 1 + len(last))

    @property
    def _time(self) -> TirExpr:
        """The current time of a sequence, in the order of memory."""
        return self._at(from_dim(self.times)) if self.lengths is None else self._place

    def _at(self, end: TirExpr) -> TirExpr:
        """The current time of a sequence up to `end`."""
        if isinstance(self.direction, TirVar):
            return self._turn + self.direction * (end - 1 - self._turn * 2)
        return end - 1 - self._turn if self._reverse else self._turn

    def _each(self, stores: Stores) -> Stmt:
        i = TirVar("i")
        return around([(i, self.batch)], self._line(i, stores))

    def _line(self, i: TirVar, stores: Stores) -> Stmt:
        """`stores` for each element of the state of sequence `i`."""
        j = TirVar("j")
        return For(j, from_dim(self.size), "vectorized", seq(*stores((i, j))))
