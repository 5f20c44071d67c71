"""Recurrent networks: layers of one or both directions, each as one operator."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.heads import shape_of
from relax_egraph.frontends.building.recurrent import Layer, run_layer
from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir.expr import Expr, ShapeExpr, Tuple


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of layer: our name, and the places of its gates among those of torch."""

    name: str
    gates: tuple[int, ...]
    states: int


_KINDS: Mapping[str, _Kind] = {
    "aten.lstm.input": _Kind("lstm", (0, 3, 1, 2), 2),
    "aten.gru.input": _Kind("gru", (1, 0, 2), 1),
    "aten.rnn_tanh.input": _Kind("rnn", (0,), 1),
}


@converts(*_KINDS)
def recurrent(node: Node) -> tuple[Expr, ...]:
    """The states of all times of the last layer, and the last states of all layers."""
    kind = _KINDS[node.op]
    count, layers = 1 + node.flag("bidirectional"), node.integer("num_layers")
    params, each = node.all("params"), 4 if node.flag("has_biases") else 2
    if len(params) != count * layers * each:
        raise ModelError("its states are projected, needs states of hidden_size elements")
    if node.flag("train") and node.number("dropout") and layers > 1:
        raise ModelError("it drops elements at random between its layers")
    first = node.flag("batch_first")
    x = node.emit("permute_dims", node["input"], axes=(1, 0, 2)) if first else node["input"]
    starts = node.all("hx") if kind.states > 1 else [node["hx"]]
    last: list[Sequence[Expr]] = []
    for k in range(layers):
        own = params[k * count * each : (k + 1) * count * each]
        layer = _layer(node, kind, own, count, each)
        states = [_cut(node, start, k * count, count, layers) for start in starts]
        x, *ends = run_layer(node, layer, x, states)
        last.append(ends)
    whole = (_joined(node, kind_of_state) for kind_of_state in zip(*last, strict=True))
    return (node.emit("permute_dims", x, axes=(1, 0, 2)) if first else x, *whole)


def _cut(node: Node, states: Expr, begin: int, count: int, layers: int) -> Expr:
    """The states of one layer."""
    if layers == 1:
        return states
    ends = ShapeExpr((begin,)), ShapeExpr((begin + count,))
    return node.emit("strided_slice", states, *ends, axes=(0,))


def _joined(node: Node, parts: Sequence[Expr]) -> Expr:
    return parts[0] if len(parts) == 1 else node.emit("concat", Tuple(tuple(parts)), axis=0)


def _layer(node: Node, kind: _Kind, params: Sequence[Expr], count: int, each: int) -> Layer:
    """The layer of `params`, which are those of `count` directions with `each` of them."""
    kinds = [node.emit("stack", Tuple(tuple(params[place::each])), axis=0) for place in range(each)]
    width, features = shape_of(params[0])
    assert isinstance(width, int)
    assert isinstance(features, int)
    gates = len(kind.gates)
    weights, recurrence = (_ordered(node, x, kind) for x in kinds[:2])
    bias, reset_bias = _biases(node, kind, kinds[2:])
    return Layer(
        kind.name,
        "bidirectional" if count > 1 else "forward",
        features,
        width // gates,
        gates,
        weights,
        recurrence,
        bias,
        reset_bias,
        reset_after=kind.name == "gru",
    )


def _biases(node: Node, kind: _Kind, both: Sequence[Expr]) -> tuple[Expr | None, Expr | None]:
    """The bias of all projected inputs, and that of the product that is reset."""
    if not both:
        return None, None
    own, theirs = both
    if kind.name != "gru":
        return _ordered(node, node.emit("add", own, theirs), kind), None
    count, width = shape_of(theirs)
    assert isinstance(width, int)
    size = width // 3
    cut = node.emit("split", theirs, indices_or_sections=(2 * size,), axis=1)
    gates, reset = node.fields(cut)
    none = node.emit("zeros", ShapeExpr((count, size)), dtype=node.dtype("input"))
    padded = node.emit("concat", Tuple((gates, none)), axis=1)
    return _ordered(node, node.emit("add", own, padded), kind), reset


def _ordered(node: Node, x: Expr, kind: _Kind) -> Expr:
    """`x` with its gates, along axis 1, in the order of the operator."""
    if kind.gates == tuple(sorted(kind.gates)):
        return x
    parts = node.fields(node.emit("split", x, indices_or_sections=len(kind.gates), axis=1))
    return node.emit("concat", Tuple(tuple(parts[k] for k in kind.gates)), axis=1)
