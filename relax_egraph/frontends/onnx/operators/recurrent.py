"""Recurrent networks: a loop over time, with the products of all inputs computed before it.

The formulas and the order of gates are those of the ONNX operators RNN, GRU and LSTM.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of, info_of
from relax_egraph.frontends.onnx.frame import Frame
from relax_egraph.frontends.onnx.loops import Loop, Turn, run_loop, stacked
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.operators.recurrent_activations import (
    Activation,
    Emit,
    activations,
)
from relax_egraph.frontends.onnx.operators.recurrent_layers import layer
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir.block_builder import BlockBuilder, call
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Attr, Expr, ShapeExpr, Tuple, TupleGetItem, const


@dataclass(frozen=True, slots=True)
class Cell:
    """A kind of cell, with its numbers of gates and states."""

    gates: int
    states: int
    functions: tuple[str, ...]


_CELLS: Mapping[str, Cell] = {
    "RNN": Cell(1, 1, ("Tanh",)),
    "GRU": Cell(3, 1, ("Sigmoid", "Tanh")),
    "LSTM": Cell(4, 2, ("Sigmoid", "Tanh", "Tanh")),
}


@dataclass(frozen=True, slots=True)
class Direction:
    """One direction of a network: its weights, and the parameters of an iteration.

    `projected` is the product of input and weights, with bias: (time, batch, gates · hidden).
    """

    cell: Cell
    reverse: bool
    projected: Expr
    recurrent: Expr
    bias: Expr
    peepholes: tuple[Expr, ...]
    functions: tuple[Activation, ...]
    clip: float
    flags: Mapping[str, bool]


@converts("RNN", "GRU", "LSTM")
def recurrent(node: Node) -> tuple[Expr, ...]:
    """The outputs of all times, and the last states."""
    cell = _CELLS[node.op]
    kind = node.attrs.text("direction")
    backwards = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}
    if kind not in backwards:
        raise ModelError(f"its direction is {kind!r}")
    results = layer(node, cell.functions)
    return _by_loop(node, cell, backwards[kind]) if results is None else results


def _by_loop(node: Node, cell: Cell, backwards: Sequence[bool]) -> tuple[Expr, ...]:
    """The same, of any network, by a loop for each direction: whether it runs backwards."""
    batch_first = bool(node.attrs.schema_default("layout"))
    x = node.emit("permute_dims", node[0], axes=(1, 0, 2)) if batch_first else node[0]
    lengths = node.get(4)
    if lengths is not None:
        lengths = node.cast(lengths, "int64")
    directions = [
        _run(node, _direction(node, cell, x, lengths, k, reverse), x, lengths, k, batch_first)
        for k, reverse in enumerate(backwards)
    ]
    outputs = node.emit("stack", Tuple(tuple(every for every, _ in directions)), axis=1)
    axis = 1 if batch_first else 0
    last = [
        node.emit("stack", Tuple(tuple(states[s] for _, states in directions)), axis=axis)
        for s in range(cell.states)
    ]
    if batch_first:
        outputs = node.emit("permute_dims", outputs, axes=(2, 0, 1, 3))
    return (outputs, *last)


def _direction(
    node: Node, cell: Cell, x: Expr, lengths: Expr | None, k: int, reverse: bool
) -> Direction:
    """Direction `k` of the network, with the projected input."""
    dtype, hidden = dtype_of(x), node.attrs.integer("hidden_size")
    size = cell.gates * hidden
    weights, recurrent_weights = (
        node.emit("permute_dims", _part(node, node[place], k)) for place in (1, 2)
    )
    if reverse:
        x = _reversed(node, x, lengths)
    projected = node.emit("matmul", x, weights)
    bias: Expr = const(0.0, dtype)
    if node.has(3):
        both = _part(node, node[3], k)
        cut = node.emit("split", both, indices_or_sections=2, axis=0)
        own, bias = node.fields(cut)
        projected = node.emit("add", projected, own)
    else:
        bias = node.emit("zeros", ShapeExpr((size,)), dtype=dtype)
    peepholes: tuple[Expr, ...] = ()
    if node.op == "LSTM" and node.has(7):
        cut = node.emit("split", _part(node, node[7], k), indices_or_sections=3, axis=0)
        peepholes = node.fields(cut)
    flags = {
        name: bool(node.attrs.schema_default(name))
        for name in ("linear_before_reset", "input_forget")
    }
    clip = node.attrs.number("clip") if node.attrs.has("clip") else 0.0
    functions = activations(node, cell.functions, k)
    return Direction(
        cell, reverse, projected, recurrent_weights, bias, peepholes, functions, clip, flags
    )


def _part(node: Node, tensor: Expr, k: int) -> Expr:
    """Slice `k` of the first axis."""
    return node.emit("take", tensor, const(k, "int64"), axis=0)


def _reversed(node: Node, x: Expr, lengths: Expr | None) -> Expr:
    """`x` reversed in time, each sequence from its end."""
    if lengths is None:
        return node.emit("flip", x, axis=0)
    return node.emit("reverse_sequence", x, lengths, seq_axis=0, batch_axis=1)


def _run(
    node: Node, way: Direction, x: Expr, lengths: Expr | None, k: int, batch_first: bool
) -> tuple[Expr, tuple[Expr, ...]]:
    """The outputs of all times of one direction, and its last states."""
    time, batch = _extents(x)
    dtype, hidden = dtype_of(x), node.attrs.integer("hidden_size")
    start: list[Expr] = []
    for place in (5, 6)[: way.cell.states]:
        if node.has(place):
            whole = node[place]
            if batch_first:
                whole = node.emit("permute_dims", whole, axes=(1, 0, 2))
            start.append(_part(node, whole, k))
        else:
            start.append(node.emit("zeros", ShapeExpr((batch, hidden)), dtype=dtype))
    passed = [way.projected, way.recurrent, way.bias, *way.peepholes]
    passed += [lengths] if lengths is not None else []

    def body(frame: Frame, turn: Turn) -> list[Expr]:
        emit = _emitter(frame.scope.bb)
        projected, weights, bias, *rest = turn.passed
        now = emit("take", projected, turn.number, axis=0)
        peepholes = tuple(rest[: len(way.peepholes)])
        states = _STEPS[node.op](emit, way, now, weights, bias, peepholes, turn.state)
        if lengths is None:
            return [*states, states[0]]
        alive = emit("expand_dims", emit("less", turn.number, rest[-1]), axis=1)
        next_states = [
            emit("where", alive, s, old) for s, old in zip(states, turn.state, strict=True)
        ]
        return [*next_states, emit("where", alive, states[0], const(0.0, dtype))]

    extent = node.emit("reshape", node.emit("shape_to_tensor", ShapeExpr((time,))), ShapeExpr(()))
    time_loop = Loop(node.op, body, tuple(start), 1, passed=tuple(passed))
    finished = run_loop(time_loop, extent, const(True, "bool"), node.frame)
    every = stacked(node, finished.scan_outputs[0], finished.kinds[0], 0)
    whole = node.bind(call("reshape", every, ShapeExpr((time, batch, hidden))))
    outputs = _reversed(node, whole, lengths) if way.reverse else whole
    return outputs, finished.state


def _extents(x: Expr) -> tuple[Dim, Dim]:
    """The numbers of times and of sequences."""
    shape = info_of(x).dims
    if shape is None:
        raise ModelError("the shape of its input is not known")
    return shape[0], shape[1]


def _emitter(bb: BlockBuilder) -> Emit:
    def emit(op: str, *operands: Expr, **attrs: Attr) -> Expr:
        return bb.emit(call(op, *operands, **attrs))

    return emit


def _gates(emit: Emit, x: Expr, count: int) -> Sequence[Expr]:
    if count == 1:
        return [x]
    cut = emit("split", x, indices_or_sections=count, axis=1)
    return [TupleGetItem(cut, k) for k in range(count)]


def _clipped(emit: Emit, way: Direction, x: Expr) -> Expr:
    return emit("clip", x, min=-way.clip, max=way.clip) if way.clip else x


def _sum(emit: Emit, way: Direction, x: Expr, h: Expr, weights: Expr, bias: Expr) -> Expr:
    """``x + h · weights + bias``."""
    return emit("add", emit("add", x, emit("matmul", h, weights)), bias)


def _rnn(
    emit: Emit,
    way: Direction,
    x: Expr,
    weights: Expr,
    bias: Expr,
    peepholes: tuple[Expr, ...],
    state: tuple[Expr, ...],
) -> list[Expr]:
    total = _clipped(emit, way, _sum(emit, way, x, state[0], weights, bias))
    return [way.functions[0].apply(emit, total)]


def _gru(
    emit: Emit,
    way: Direction,
    x: Expr,
    weights: Expr,
    bias: Expr,
    peepholes: tuple[Expr, ...],
    state: tuple[Expr, ...],
) -> list[Expr]:
    """The gates are update, reset and hidden, in that order."""
    f, g = way.functions
    (h,) = state
    own = list(_gates(emit, x, 3))
    if way.flags["linear_before_reset"]:
        projected = emit("add", emit("matmul", h, weights), bias)
        theirs = list(_gates(emit, projected, 3))
        z, r = (f.apply(emit, _clipped(emit, way, emit("add", own[k], theirs[k]))) for k in (0, 1))
        total = emit("add", own[2], emit("multiply", r, theirs[2]))
    else:
        parts = emit("split", weights, indices_or_sections=3, axis=1)
        biases = emit("split", bias, indices_or_sections=3, axis=0)
        w = [TupleGetItem(parts, k) for k in range(3)]
        b = [TupleGetItem(biases, k) for k in range(3)]
        z, r = (
            f.apply(emit, _clipped(emit, way, _sum(emit, way, own[k], h, w[k], b[k])))
            for k in (0, 1)
        )
        total = _sum(emit, way, own[2], emit("multiply", r, h), w[2], b[2])
    hidden = g.apply(emit, _clipped(emit, way, total))
    rest = emit("subtract", const(1.0, dtype_of(z)), z)
    return [emit("add", emit("multiply", rest, hidden), emit("multiply", z, h))]


def _lstm(
    emit: Emit,
    way: Direction,
    x: Expr,
    weights: Expr,
    bias: Expr,
    peepholes: tuple[Expr, ...],
    state: tuple[Expr, ...],
) -> list[Expr]:
    """The gates are input, output, forget and cell, in that order."""
    f, g, outward = way.functions
    h, c = state
    i, o, forget, cell = _gates(emit, _sum(emit, way, x, h, weights, bias), 4)
    if peepholes:
        i = emit("add", i, emit("multiply", peepholes[0], c))
        forget = emit("add", forget, emit("multiply", peepholes[2], c))
    opened = f.apply(emit, _clipped(emit, way, i))
    if way.flags["input_forget"]:
        retained = emit("subtract", const(1.0, dtype_of(c)), opened)
    else:
        retained = f.apply(emit, _clipped(emit, way, forget))
    new = g.apply(emit, _clipped(emit, way, cell))
    memory = emit("add", emit("multiply", retained, c), emit("multiply", opened, new))
    if peepholes:
        o = emit("add", o, emit("multiply", peepholes[1], memory))
    shown = f.apply(emit, _clipped(emit, way, o))
    return [emit("multiply", shown, outward.apply(emit, memory)), memory]


_STEPS: Mapping[str, Callable[..., list[Expr]]] = {"RNN": _rnn, "GRU": _gru, "LSTM": _lstm}
