"""A transformer encoder, decomposed into small operators as exporters write it.

Post-norm, about 45 operators a layer: a linear layer is a product with a transposed weight, plus a
bias; the mask is added to the scores; softmax, layer norm and gelu are spelled out.
"""

import math
from dataclasses import dataclass

import numpy as np

from relax_egraph.ir import BlockBuilder, IRModule, Var, call, const, shape, symbol, tensor
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Attr, Constant, Expr, Tuple

MASKED = -1e9
"""The bias of the score of a hidden key."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The widths of an encoder; batch and sequence are symbolic.

    Each layer has weights of its own, unless they are `shared`.  With `computed_shapes` the target
    of each reshape is computed at run time, from the shape of its operand.
    """

    layers: int
    hidden: int = 64
    heads: int = 4
    inner: int = 128
    shared: bool = False
    computed_shapes: bool = False


@dataclass(frozen=True, slots=True)
class Linear:
    """`weight` is (features out, features in)."""

    weight: Constant
    bias: Constant


@dataclass(frozen=True, slots=True)
class Norm:
    """The scale and the shift of a layer norm."""

    gamma: Constant
    beta: Constant


@dataclass(frozen=True, slots=True)
class Layer:
    """The weights of one layer."""

    query: Linear
    key: Linear
    value: Linear
    output: Linear
    up: Linear
    down: Linear
    attention_norm: Norm
    output_norm: Norm


def encoder(sizes: Sizes) -> IRModule:
    """``main(x: (batch, length, hidden), mask: (batch, length) of 0s and 1s)``, in one block."""
    batch, length = symbol("batch"), symbol("length")
    writer = _Encoder(sizes, batch, length)
    x = Var("x", tensor((batch, length, sizes.hidden), "float32"))
    mask = Var("mask", tensor((batch, length), "int64"))
    random = np.random.default_rng(0)
    with writer.bb.function("main", [x, mask]):
        with writer.bb.dataflow():
            hidden, first = writer.added_mask(mask), _drawn(sizes, random)
            value: Expr = x
            for number in range(sizes.layers):
                layer = first if sizes.shared or number == 0 else _drawn(sizes, random)
                value = writer.layer(value, hidden, layer)
            out = writer.bb.emit_output(value)
        writer.bb.emit_func_output(out)
    return writer.bb.get()


def _drawn(sizes: Sizes, random: np.random.Generator) -> Layer:
    def linear(inputs: int, outputs: int) -> Linear:
        weight = random.standard_normal((outputs, inputs), np.float32)
        weight *= np.float32(1 / math.sqrt(inputs))
        return Linear(const(weight), const(random.standard_normal(outputs, np.float32)))

    def norm() -> Norm:
        gamma, beta = (random.standard_normal(sizes.hidden, np.float32) for _ in range(2))
        return Norm(const(1 + gamma / 8), const(beta / 8))

    hidden, inner = sizes.hidden, sizes.inner
    return Layer(
        query=linear(hidden, hidden),
        key=linear(hidden, hidden),
        value=linear(hidden, hidden),
        output=linear(hidden, hidden),
        up=linear(hidden, inner),
        down=linear(inner, hidden),
        attention_norm=norm(),
        output_norm=norm(),
    )


class _Encoder:
    """Writes layers into the open block."""

    def __init__(self, sizes: Sizes, batch: Dim, length: Dim) -> None:
        self.sizes = sizes
        self.batch = batch
        self.length = length
        self.bb = BlockBuilder()

    def op(self, name: str, *args: Expr, **attrs: Attr) -> Var:
        return self.bb.emit(call(name, *args, **attrs))

    def added_mask(self, mask: Var) -> Var:
        """The bias of the scores: 0, or `MASKED` where `mask` is 0."""
        wide = self.op("expand_dims", mask, axis=(1, 2))
        hidden = self.op("subtract", const(1.0), self.op("astype", wide, dtype="float32"))
        return self.op("multiply", hidden, const(MASKED))

    def layer(self, x: Expr, mask: Var, weights: Layer) -> Var:
        mixed = self.attention(x, mask, weights)
        attended = self.norm(self.op("add", mixed, x), weights.attention_norm)
        up = self.gelu(self.linear(attended, weights.up))
        down = self.linear(up, weights.down)
        return self.norm(self.op("add", down, attended), weights.output_norm)

    def linear(self, x: Expr, part: Linear) -> Var:
        product = self.op("matmul", x, self.op("permute_dims", part.weight))
        return self.op("add", product, part.bias)

    def attention(self, x: Expr, mask: Var, weights: Layer) -> Var:
        query = self.heads(self.linear(x, weights.query), (0, 2, 1, 3))
        key = self.heads(self.linear(x, weights.key), (0, 2, 3, 1))
        value = self.heads(self.linear(x, weights.value), (0, 2, 1, 3))
        width = self.sizes.hidden // self.sizes.heads
        scores = self.op("divide", self.op("matmul", query, key), const(math.sqrt(width)))
        shares = self.softmax(self.op("add", scores, mask))
        mixed = self.op("matmul", shares, value)
        joined = self.op("permute_dims", mixed, axes=(0, 2, 1, 3))
        return self.linear(self.reshape(joined, (self.sizes.hidden,)), weights.output)

    def heads(self, x: Var, axes: tuple[int, ...]) -> Var:
        """The heads of `x`, with their axes in the order `axes`."""
        heads = self.sizes.heads
        parted = self.reshape(x, (heads, self.sizes.hidden // heads))
        return self.op("permute_dims", parted, axes=axes)

    def reshape(self, x: Var, last: tuple[int, ...]) -> Var:
        """`x` as (batch, length, *last)."""
        if not self.sizes.computed_shapes:
            return self.op("reshape", x, shape([self.batch, self.length, *last]))
        extents = self.op("shape_to_tensor", self.op("shape_of", x))
        kept = [self.op("take", extents, const(np.array([k])), axis=0) for k in (0, 1)]
        target = self.op("concat", Tuple((*kept, const(np.array(last)))), axis=0)
        return self.op("reshape", x, self.op("tensor_to_shape", target))

    def softmax(self, x: Var) -> Var:
        away = self.op("subtract", x, self.op("max", x, axis=(-1,), keepdims=True))
        powers = self.op("exp", away)
        return self.op("divide", powers, self.op("sum", powers, axis=(-1,), keepdims=True))

    def norm(self, x: Var, part: Norm) -> Var:
        away = self.op("subtract", x, self.op("mean", x, axis=(-1,), keepdims=True))
        square = self.op("power", away, const(2.0))
        variance = self.op("mean", square, axis=(-1,), keepdims=True)
        root = self.op("sqrt", self.op("add", variance, const(1e-5)))
        scaled = self.op("multiply", self.op("divide", away, root), part.gamma)
        return self.op("add", scaled, part.beta)

    def gelu(self, x: Var) -> Var:
        erf = self.op("erf", self.op("divide", x, const(math.sqrt(2))))
        half = self.op("multiply", x, self.op("add", erf, const(1.0)))
        return self.op("multiply", half, const(0.5))
