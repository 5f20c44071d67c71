"""Recurrent layers as one operator, such as ``R.nn.lstm``, of one product of all inputs."""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_egraph.frontends.building.builder import Builder, dtype_of
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Attr, Expr, ShapeExpr
from relax_egraph.ir.ops.recurrence import DIRECTIONS


@dataclass(frozen=True, slots=True)
class Layer:
    """The weights of a layer of `kind` ``lstm``, ``gru`` or ``rnn``, in all directions.

    `weights` are (direction, gate · size, feature), `recurrence` (direction, gate · size, size),
    a `bias` (direction, gate · size), with the order of gates of the operator.  A `reset_bias`,
    (direction, size), is that of a product that is reset.
    """

    kind: str
    direction: str
    features: int
    size: int
    gates: int
    weights: Expr
    recurrence: Expr
    bias: Expr | None
    reset_bias: Expr | None = None
    reset_after: bool = False


def run_layer(
    b: Builder, layer: Layer, x: Expr, states: Sequence[Expr], lengths: Expr | None = None
) -> tuple[Expr, ...]:
    """The states of all times, (time, batch, direction · size), and the last ones.

    `x` is (time, batch, feature); `states` and the last ones are (direction, batch, size).
    """
    recurrence = b.emit("permute_dims", layer.recurrence, axes=(0, 2, 1))
    operands = [_projected(b, layer, x), recurrence, *states]
    count = DIRECTIONS[layer.direction]
    if layer.kind == "gru" and not (layer.reset_bias is None and lengths is None):
        operands.append(layer.reset_bias or zeros_of(b, x, count, layer.size))
    if lengths is not None:
        operands.append(b.cast(lengths, "int64"))
    attrs: dict[str, Attr] = {"direction": layer.direction}
    if layer.kind == "gru":
        attrs["reset_after"] = layer.reset_after
    return b.fields(b.emit(f"nn.{layer.kind}", *operands, **attrs))


def zeros_of(b: Builder, x: Expr, *shape: Dim) -> Expr:
    """Zeros of `shape` in the dtype of `x`."""
    return b.emit("zeros", ShapeExpr(shape), dtype=dtype_of(x))


def _projected(b: Builder, layer: Layer, x: Expr) -> Expr:
    """The product of the inputs and the weights of all directions, with the bias."""
    whole = DIRECTIONS[layer.direction] * layer.gates * layer.size
    by_feature = b.emit("permute_dims", layer.weights, axes=(2, 0, 1))
    weights = b.emit("reshape", by_feature, ShapeExpr((layer.features, whole)))
    product = b.emit("matmul", x, weights)
    if layer.bias is None:
        return product
    return b.emit("add", product, b.emit("reshape", layer.bias, ShapeExpr((whole,))))
