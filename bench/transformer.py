"""A transformer encoder, decomposed into small operators as exporters write it."""

import math
from dataclasses import dataclass

import numpy as np

from relax_egraph.ir import BlockBuilder, IRModule, Var, call, const, shape, symbol, tensor
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Constant, Expr


@dataclass(frozen=True, slots=True)
class Sizes:
    """The widths of an encoder; batch and sequence are symbolic."""

    layers: int
    hidden: int = 64
    heads: int = 4
    inner: int = 128


class _Encoder:
    """Writes layers into the open block; weights are drawn once and shared between layers."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self.bb = BlockBuilder()
        random = np.random.default_rng(0)

        def weight(*extents: int) -> Constant:
            scale = 1 / math.sqrt(extents[0])
            return const((random.normal(size=extents) * scale).astype(np.float32), "float32")

        hidden, inner = sizes.hidden, sizes.inner
        self.square = [weight(hidden, hidden) for _ in range(4)]
        self.bias = [weight(hidden) for _ in range(7)]
        self.up, self.up_bias = weight(hidden, inner), weight(inner)
        self.down = weight(inner, hidden)

    def op(self, name: str, *args: Expr, **attrs: int | float | bool | tuple[int, ...]) -> Var:
        return self.bb.emit(call(name, *args, **attrs))

    def linear(self, x: Expr, w: Expr, b: Expr) -> Var:
        return self.op("add", self.op("matmul", x, w), b)

    def split(self, x: Expr, batch: Dim, length: Dim, axes: tuple[int, ...]) -> Var:
        """The heads of `x`, with their axes in the order `axes`."""
        heads = self.sizes.heads
        parted = self.op("reshape", x, shape([batch, length, heads, self.sizes.hidden // heads]))
        return self.op("permute_dims", parted, axes=axes)

    def attention(self, x: Var, batch: Dim, length: Dim) -> Var:
        q, k, v, o = self.square
        query = self.split(self.linear(x, q, self.bias[0]), batch, length, (0, 2, 1, 3))
        key = self.split(self.linear(x, k, self.bias[1]), batch, length, (0, 2, 3, 1))
        value = self.split(self.linear(x, v, self.bias[2]), batch, length, (0, 2, 1, 3))
        width = self.sizes.hidden // self.sizes.heads
        scores = self.op("divide", self.op("matmul", query, key), const(math.sqrt(width)))
        mixed = self.op("matmul", self.op("nn.softmax", scores, axis=-1), value)
        joined = self.op("permute_dims", mixed, axes=(0, 2, 1, 3))
        flat = self.op("reshape", joined, shape([batch, length, self.sizes.hidden]))
        return self.linear(flat, o, self.bias[3])

    def norm(self, x: Var) -> Var:
        away = self.op("subtract", x, self.op("mean", x, axis=(-1,), keepdims=True))
        square = self.op("multiply", away, away)
        variance = self.op("mean", square, axis=(-1,), keepdims=True)
        root = self.op("sqrt", self.op("add", variance, const(1e-5)))
        scaled = self.op("multiply", self.op("divide", away, root), self.bias[4])
        return self.op("add", scaled, self.bias[5])

    def gelu(self, x: Var) -> Var:
        half = self.op("multiply", x, const(0.5))
        erf = self.op("erf", self.op("divide", x, const(math.sqrt(2))))
        return self.op("multiply", half, self.op("add", erf, const(1.0)))

    def layer(self, x: Var, batch: Dim, length: Dim) -> Var:
        attended = self.norm(self.op("add", x, self.attention(x, batch, length)))
        up = self.gelu(self.linear(attended, self.up, self.up_bias))
        return self.norm(self.op("add", attended, self.linear(up, self.down, self.bias[6])))


def encoder(sizes: Sizes) -> IRModule:
    """``main(x: (batch, length, hidden))``: post-norm layers in one dataflow block."""
    batch, length = symbol("batch"), symbol("length")
    writer = _Encoder(sizes)
    x = Var("x", tensor((batch, length, sizes.hidden), "float32"))
    with writer.bb.function("main", [x]):
        with writer.bb.dataflow():
            value = x
            for _ in range(sizes.layers):
                value = writer.layer(value, batch, length)
            out = writer.bb.emit_output(value)
        writer.bb.emit_func_output(out)
    return writer.bb.get()
