"""Recurrent layers: a turn of the loop is products with the recurrence, and a map of gates."""

from collections.abc import Mapping, Sequence

from relax_egraph.ir import dims
from relax_egraph.lower.legalize.elementwise import Legalize
from relax_egraph.lower.legalize.recurrent_layer import At, Layer, Operands
from relax_egraph.tir import te
from relax_egraph.tir.expr import TirExpr
from relax_egraph.tir.stmt import PrimFunc, Stmt, Store


def rnn(
    projected: te.Tensor,
    recurrence: te.Tensor,
    hidden: te.Tensor,
    lengths: te.Tensor | None = None,
    *,
    direction: str,
) -> PrimFunc:
    """A product, then the hyperbolic tangent of its sum with the input."""
    layer = Layer(Operands(1, projected, recurrence, (hidden,), lengths, direction))
    (h,) = layer.states
    sums = layer.local("sums", layer.size)

    def next_state(at: At) -> Sequence[Stmt]:
        return (Store(h, at, te.tanh(layer.input(0, at) + sums[at])),)

    return layer.function("rnn", (layer.product(sums, h, 0),), next_state, (sums,))


def lstm(
    projected: te.Tensor,
    recurrence: te.Tensor,
    hidden: te.Tensor,
    cell: te.Tensor,
    lengths: te.Tensor | None = None,
    *,
    direction: str,
) -> PrimFunc:
    """A product with all gates, then both states from gates and the old cell state."""
    layer = Layer(Operands(4, projected, recurrence, (hidden, cell), lengths, direction))
    h, c = layer.states
    sums = layer.local("sums", layer.width)

    def next_states(at: At) -> Sequence[Stmt]:
        i, o, f, g = (layer.input(k, at) + sums[at[0], layer.column(k, at)] for k in range(4))
        memory = te.sigmoid(f) * c[at] + te.sigmoid(i) * te.tanh(g)
        return Store(c, at, memory), Store(h, at, te.sigmoid(o) * te.tanh(c[at]))

    return layer.function("lstm", (layer.product(sums, h, 0),), next_states, (sums,))


def gru(
    projected: te.Tensor,
    recurrence: te.Tensor,
    hidden: te.Tensor,
    bias: te.Tensor | None = None,
    lengths: te.Tensor | None = None,
    *,
    direction: str,
    reset_after: bool,
) -> PrimFunc:
    """A product with all gates, or one with update and reset before that with the candidate."""
    layer = Layer(Operands(3, projected, recurrence, (hidden,), lengths, direction, bias))
    (h,) = layer.states
    before = 3 if reset_after else 2
    sums = layer.local("sums", dims.mul(layer.size, before))
    own = sums if reset_after else layer.local("candidate", layer.size)
    reset = layer.local("reset", layer.size)

    def gate(k: int, at: At) -> TirExpr:
        return te.sigmoid(layer.input(k, at) + sums[at[0], layer.column(k, at)])

    def next_state(at: At) -> Sequence[Stmt]:
        product: TirExpr = own[at[0], layer.column(2, at) if reset_after else at[1]]
        if layer.bias is not None:
            product = product + te.cast(layer.bias[layer.direction, at[1]], layer.dtype)
        if reset_after:
            product = gate(1, at) * product
        candidate = te.tanh(layer.input(2, at) + product)
        update = gate(0, at)
        return (Store(h, at, update * h[at] + (1.0 - update) * candidate),)

    product = layer.product(sums, h, 0)
    if reset_after:
        return layer.function("gru", (product,), next_state, (sums,))
    resets = layer.running(lambda at: (Store(reset, at, gate(1, at) * h[at]),))
    turn = (product, resets, layer.product(own, reset, before))
    return layer.function("gru", turn, next_state, (sums, reset, own))


LEGALIZE: Mapping[str, Legalize] = {"nn.rnn": rnn, "nn.lstm": lstm, "nn.gru": gru}
