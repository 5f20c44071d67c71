"""RNN, LSTM and GRU nodes as one operator, such as ``R.nn.lstm``.

Nodes with other activations, clipping, peepholes or coupled
gates have no such operator, nor have those with weights of unknown extents.
"""

from dataclasses import dataclass

from relax_egraph.frontends.building.recurrent import Layer, run_layer, zeros_of
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, ShapeExpr, Tuple
from relax_egraph.ir.ops.recurrence import DIRECTIONS

_LENGTHS, _STATES, _PEEPHOLES = 4, (5, 6), 7


@dataclass(frozen=True, slots=True)
class _Layer:
    """The extents of a layer: directions, sequences, elements of a state, and of all gates."""

    node: Node
    directions: int
    times: Dim
    batch: Dim
    size: int
    width: int
    features: int
    batch_first: bool


def layer(node: Node, activations: tuple[str, ...]) -> tuple[Expr, ...] | None:
    """The outputs of all times and the last states; ``None`` if no operator computes `node`.

    `activations` are those of the operator, for each direction.
    """
    of = _layer(node) if _is_usual(node, activations) else None
    if of is None:
        return None
    start = [_state(of, place) for place in _STATES[: 2 if node.op == "LSTM" else 1]]
    own, theirs = _biases(of)
    whole = Layer(
        node.op.lower(),
        node.attrs.text("direction"),
        of.features,
        of.size,
        of.width // of.size,
        node[1],
        node[2],
        own,
        theirs,
        node.op == "GRU" and _resets_after(node),
    )
    x = node.emit("permute_dims", node[0], axes=(1, 0, 2)) if of.batch_first else node[0]
    every, *last = run_layer(node, whole, x, start, node.get(_LENGTHS))
    shape = ShapeExpr((of.times, of.batch, of.directions, of.size))
    outputs = node.emit("reshape", every, shape)
    if of.batch_first:
        last = [node.emit("permute_dims", state, axes=(1, 0, 2)) for state in last]
    order = (1, 0, 2, 3) if of.batch_first else (0, 2, 1, 3)
    return (node.emit("permute_dims", outputs, axes=order), *last)


def _is_usual(node: Node, activations: tuple[str, ...]) -> bool:
    """Whether the operator computes `node`: its activations are usual, and its states unlimited."""
    if node.has(_PEEPHOLES):
        return False
    names = node.attrs.texts("activations") if node.attrs.has("activations") else ()
    usual = [name.lower() for name in activations * DIRECTIONS[node.attrs.text("direction")]]
    is_clipped = node.attrs.has("clip") and bool(node.attrs.number("clip"))
    is_coupled = bool(node.attrs.schema_default("input_forget"))
    return not is_clipped and not is_coupled and [n.lower() for n in names or usual] == usual


def _layer(node: Node) -> _Layer | None:
    """The layer of `node`, if the extents of its weights are known."""
    shape, weights, recurrence = (node.info(place).dims for place in (0, 1, 2))
    if shape is None or weights is None or recurrence is None:
        return None
    directions, width, features = weights
    if not isinstance(directions, int) or not isinstance(width, int):
        return None
    size, batch_first = node.attrs.integer("hidden_size"), bool(node.attrs.schema_default("layout"))
    if recurrence != (directions, width, size) or not isinstance(features, int):
        return None
    batch, times = shape[:2] if batch_first else (shape[1], shape[0])
    return _Layer(node, directions, times, batch, size, width, features, batch_first)


def _resets_after(node: Node) -> bool:
    return bool(node.attrs.schema_default("linear_before_reset"))


def _state(of: _Layer, place: int) -> Expr:
    """A first state: operand `place`, or 0."""
    node = of.node
    if not node.has(place):
        return zeros_of(node, node[0], of.directions, of.batch, of.size)
    if of.batch_first:
        return node.emit("permute_dims", node[place], axes=(1, 0, 2))
    return node[place]


def _biases(of: _Layer) -> tuple[Expr | None, Expr | None]:
    """The bias of all projected inputs, and that of a product that is reset, if it is separate."""
    node = of.node
    if not node.has(3):
        return None, None
    own, theirs = node.fields(node.emit("split", node[3], indices_or_sections=2, axis=1))
    if node.op != "GRU" or not _resets_after(node):
        return node.emit("add", own, theirs), None
    cut = node.emit("split", theirs, indices_or_sections=(2 * of.size,), axis=1)
    gates, reset = node.fields(cut)
    rest = zeros_of(node, node[0], of.directions, of.size)
    padded = node.emit("concat", Tuple((gates, rest)), axis=1)
    return node.emit("add", own, padded), reset
