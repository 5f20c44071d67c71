"""Recurrent layers: a sequential loop over time for each direction, with states in local buffers.

A turn of the loop is a product with the recurrence, and a map of gates and states.  Directions are
independent.  Values are computed in the dtype of the arithmetic, and rounded when stored in an
output.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import computed
from relax_egraph.ir.ops.recurrence import DIRECTIONS
from relax_egraph.lower.legalize.elementwise import Legalize
from relax_egraph.lower.legalize.loops import ZERO, around, free, loop_function, names_of
from relax_egraph.lower.legalize.proven import need_equal
from relax_egraph.tir import te
from relax_egraph.tir.expr import Buffer, TirExpr, TirVar, from_dim
from relax_egraph.tir.stmt import BlockAxis, For, PrimFunc, Stmt, Store, TirBlock, seq

Stores: TypeAlias = Callable[[tuple[TirExpr, ...]], Sequence[Stmt]]
"""The stores for the element of a state at an index: its sequence, and its place."""


def lstm(
    projected: te.Tensor,
    recurrence: te.Tensor,
    hidden: te.Tensor,
    cell: te.Tensor,
    *,
    direction: str,
) -> PrimFunc:
    """A product with all gates, then both states from gates and the old cell state."""
    layer = _Layer.of(4, projected, recurrence, (hidden, cell), (), direction)
    h, c = layer.states
    sums = layer.local("sums", layer.gates)

    def next_states(at: tuple[TirExpr, ...]) -> Sequence[Stmt]:
        i, o, f, g = (layer.input(k, at) + sums[at[0], layer.column(k, at)] for k in range(4))
        memory = te.sigmoid(f) * c[at] + te.sigmoid(i) * te.tanh(g)
        return Store(c, at, memory), Store(h, at, te.sigmoid(o) * te.tanh(c[at]))

    return layer.function("lstm", (layer.product(sums, h, 0),), next_states, (sums,))


def gru(
    projected: te.Tensor,
    recurrence: te.Tensor,
    hidden: te.Tensor,
    bias: te.Tensor | None = None,
    *,
    direction: str,
    reset_after: bool,
) -> PrimFunc:
    """A product with all gates, or one with update and reset before that with the candidate."""
    others = () if bias is None else (bias,)
    layer = _Layer.of(3, projected, recurrence, (hidden,), others, direction)
    (h,) = layer.states
    before = 3 if reset_after else 2
    sums = layer.local("sums", dims.mul(layer.size, before))
    own = sums if reset_after else layer.local("candidate", layer.size)
    reset = layer.local("reset", layer.size)

    def gate(k: int, at: tuple[TirExpr, ...]) -> TirExpr:
        return te.sigmoid(layer.input(k, at) + sums[at[0], layer.column(k, at)])

    def next_state(at: tuple[TirExpr, ...]) -> Sequence[Stmt]:
        product: TirExpr = own[at[0], layer.column(2, at) if reset_after else at[1]]
        if bias is not None:
            product = product + te.cast(layer.extra[0][layer.direction, at[1]], layer.dtype)
        if reset_after:
            product = gate(1, at) * product
        candidate = te.tanh(layer.input(2, at) + product)
        update = gate(0, at)
        return (Store(h, at, update * h[at] + (1.0 - update) * candidate),)

    product = layer.product(sums, h, 0)
    if reset_after:
        return layer.function("gru", (product,), next_state, (sums,))
    resets = layer.each(lambda at: (Store(reset, at, gate(1, at) * h[at]),))
    turn = (product, resets, layer.product(own, reset, before))
    return layer.function("gru", turn, next_state, (sums, reset, own))


@dataclass(frozen=True)
class _Layer:
    """The buffers, extents and variables of a layer; `inputs` are all operands.

    `direction` and `time` are the indices of the current turn, in the order of memory.
    """  # no slots: cached properties need the dictionary

    inputs: tuple[Buffer, ...]
    count: int
    size: Dim
    gates: Dim
    states: tuple[Buffer, ...]
    direction: TirExpr
    turn: TirVar
    time: TirExpr

    @classmethod
    def of(
        cls,
        gates: int,
        projected: te.Tensor,
        recurrence: te.Tensor,
        states: tuple[te.Tensor, ...],
        others: tuple[te.Tensor, ...],
        direction: str,
    ) -> "_Layer":
        """The layer of operands whose extents are proven to agree."""
        tensors = (projected, recurrence, *states, *others)
        inputs = tuple(Buffer(x.name, x.shape, x.dtype) for x in tensors)
        count, (_, size, width) = DIRECTIONS[direction], recurrence.shape
        times, batch, whole = projected.shape
        need_equal(recurrence.shape, (count, size, dims.mul(size, gates)))
        need_equal((whole,), (dims.mul(width, count),))
        for x in states:
            need_equal(x.shape, (count, batch, size))
        for x in others:
            need_equal(x.shape, (count, size))
        used = names_of(*inputs)
        dtype = computed(projected.dtype)
        own = (Buffer(free(f"{x.name}_now", used), (batch, size), dtype, "local") for x in states)
        d: TirExpr = TirVar(free("d", used)) if count > 1 else ZERO
        t = TirVar(free("t", used))
        time: TirExpr = t
        if direction == "reverse":
            time = from_dim(times) - 1 - t
        elif direction == "bidirectional":
            time = t + d * (from_dim(times) - 1 - t * 2)
        return cls(inputs, count, size, width, tuple(own), d, t, time)

    @cached_property
    def dtype(self) -> str:
        """The dtype of the arithmetic."""
        return computed(self.inputs[0].dtype)

    @property
    def times(self) -> Dim:
        """The turns of the loop."""
        return self.inputs[0].shape[0]

    @property
    def batch(self) -> Dim:
        """The number of sequences."""
        return self.inputs[0].shape[1]

    @property
    def extra(self) -> tuple[Buffer, ...]:
        """The operands beside input, recurrence and states."""
        return self.inputs[2 + len(self.states) :]

    def local(self, name: str, columns: Dim) -> Buffer:
        """A buffer with a row for each sequence."""
        return Buffer(
            free(name, names_of(*self.inputs)), (self.batch, columns), self.dtype, "local"
        )

    def column(self, gate: int, at: tuple[TirExpr, ...]) -> TirExpr:
        """The column of an element of a gate."""
        return from_dim(dims.mul(self.size, gate)) + at[1]

    def input(self, gate: int, at: tuple[TirExpr, ...]) -> TirExpr:
        """The projected input of an element of a gate."""
        first = self.direction * from_dim(self.gates)
        element = self.inputs[0][self.time, at[0], first + self.column(gate, at)]
        return te.cast(element, self.dtype)

    def each(self, stores: Stores) -> Stmt:
        """`stores` for each element of a state."""
        i, j = TirVar("i"), TirVar("j")
        line = For(j, from_dim(self.size), "vectorized", seq(*stores((i, j))))
        return around([(i, self.batch)], line)

    def product(self, out: Buffer, a: Buffer, gate: int) -> Stmt:
        """``out = a · recurrence``, of the columns from `gate` on."""
        extents = (self.batch, out.shape[1], self.size)
        loops, axes = ([TirVar(name) for name in names] for names in ("ijk", "bce"))
        i, j, k = axes
        column = from_dim(dims.mul(self.size, gate)) + j
        weight = te.cast(self.inputs[1][self.direction, k, column], self.dtype)
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

    def function(
        self, name: str, turn: Sequence[Stmt], next_states: Stores, scratch: tuple[Buffer, ...]
    ) -> PrimFunc:
        """The function that runs `turn` and `next_states` for all times of each direction."""
        source, first = self.inputs[0], self.inputs[2 : 2 + len(self.states)]
        every = dims.mul(self.size, self.count)
        used = names_of(*self.inputs)
        out = Buffer(free(name, used), (self.times, self.batch, every), source.dtype)
        last = tuple(Buffer(free(f"{x.name}_last", used), x.shape, x.dtype) for x in first)

        def begin(at: tuple[TirExpr, ...]) -> Sequence[Stmt]:
            pairs = zip(self.states, first, strict=True)
            return [Store(s, at, te.cast(x[self.direction, *at], s.dtype)) for s, x in pairs]

        def step(at: tuple[TirExpr, ...]) -> Sequence[Stmt]:
            column = self.direction * from_dim(self.size) + at[1]
            hidden = te.cast(self.states[0][at], out.dtype)
            return [*next_states(at), Store(out, (self.time, at[0], column), hidden)]

        def end(at: tuple[TirExpr, ...]) -> Sequence[Stmt]:
            pairs = zip(self.states, last, strict=True)
            return [Store(x, (self.direction, *at), te.cast(s[at], x.dtype)) for s, x in pairs]

        loop = For(self.turn, from_dim(self.times), "serial", seq(*turn, self.each(step)))
        body = seq(self.each(begin), loop, self.each(end))
        whole: Stmt = TirBlock(name, (), body, allocs=(*self.states, *scratch))
        if isinstance(self.direction, TirVar):
            whole = around([(self.direction, self.count)], whole, "parallel")
        return loop_function((*self.inputs, out, *last), whole, 1 + len(last))


LEGALIZE: Mapping[str, Legalize] = {"nn.lstm": lstm, "nn.gru": gru}
