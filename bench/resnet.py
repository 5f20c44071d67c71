"""Residual networks as exporters write them: convolutions without bias, batch norms, relus.

Data is NCHW, weights are OIHW.  He et al., "Deep Residual Learning for Image Recognition" (2015);
bottlenecks downsample in the middle convolution, as in later versions.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from relax_egraph.ir import BlockBuilder, IRModule, Var, call, const, shape, tensor
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Attr, Expr, TupleGetItem

Array = npt.NDArray[np.float32]

RESNET50 = (3, 4, 6, 3)
"""The number of bottlenecks of each stage."""

EXPANSION = 4
"""The ratio of output channels to middle channels of a bottleneck."""


def basic_block(batch: Dim, channels: int, side: int) -> IRModule:
    """``main(x: (batch, channels, side, side))``: two 3×3 convolutions and a residual."""
    writer = _Network()
    x = Var("x", tensor((batch, channels, side, side), "float32"))
    with writer.bb.function("main", [x]):
        with writer.bb.dataflow():
            inner = writer.op("nn.relu", writer.normed(x, channels, channels, 3))
            around = writer.op("add", writer.normed(inner, channels, channels, 3), x)
            out = writer.bb.emit_output(call("nn.relu", around))
        writer.bb.emit_func_output(out)
    return writer.bb.get()


def resnet(
    batch: Dim, depths: Sequence[int] = RESNET50, side: int = 224, classes: int = 1000
) -> IRModule:
    """``main(x: (batch, 3, side, side))``: the logits of `classes` classes."""
    writer = _Network()
    x = Var("x", tensor((batch, 3, side, side), "float32"))
    with writer.bb.function("main", [x]):
        with writer.bb.dataflow():
            first = writer.op("nn.relu", writer.normed(x, 3, 64, 7, stride=2))
            pool = {"pool_size": (3, 3), "strides": (2, 2), "padding": (1, 1)}
            value: Expr = writer.op("nn.max_pool2d", first, **pool)
            channels = 64
            for stage, depth in enumerate(depths):
                for place in range(depth):
                    stride = 2 if stage > 0 and place == 0 else 1
                    value = writer.bottleneck(value, channels, 64 << stage, stride)
                    channels = EXPANSION * (64 << stage)
            mean = writer.op("nn.adaptive_avg_pool2d", value, output_size=(1, 1))
            flat = writer.op("reshape", mean, shape((batch, channels)))
            out = writer.bb.emit_output(writer.dense(flat, channels, classes))
        writer.bb.emit_func_output(out)
    return writer.bb.get()


@dataclass(frozen=True)
class _Network:
    """Writes layers into the open block, with weights drawn in order."""

    bb: BlockBuilder = field(default_factory=BlockBuilder)
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def op(self, name: str, *args: Expr, **attrs: Attr) -> Var:
        return self.bb.emit(call(name, *args, **attrs))

    def bottleneck(self, x: Expr, inputs: int, middle: int, stride: int) -> Var:
        outputs = EXPANSION * middle
        narrow = self.op("nn.relu", self.normed(x, inputs, middle, 1))
        inner = self.op("nn.relu", self.normed(narrow, middle, middle, 3, stride))
        wide = self.normed(inner, middle, outputs, 1)
        same = inputs == outputs and stride == 1
        around = x if same else self.normed(x, inputs, outputs, 1, stride)
        return self.op("nn.relu", self.op("add", wide, around))

    def normed(self, x: Expr, inputs: int, outputs: int, kernel: int, stride: int = 1) -> Var:
        """A square convolution, and the batch norm of its result."""
        weight = self._drawn(outputs, inputs, kernel, kernel)
        weight *= np.float32(1 / math.sqrt(inputs * kernel**2))
        product = self.op(
            "nn.conv2d",
            x,
            const(weight),
            strides=(stride, stride),
            padding=(kernel // 2, kernel // 2),
        )
        near_one = (np.exp(self._drawn(outputs) / 8) for _ in range(2))
        near_zero = (self._drawn(outputs) / 8 for _ in range(2))
        (gamma, variance), (beta, mean) = near_one, near_zero
        parts = map(const, (gamma, beta, mean, variance))
        return self.bb.emit(
            TupleGetItem(self.op("nn.batch_norm", product, *parts, training=False), 0)
        )

    def dense(self, x: Expr, inputs: int, outputs: int) -> Expr:
        weight = self._drawn(inputs, outputs) * np.float32(1 / math.sqrt(inputs))
        return call("add", self.op("matmul", x, const(weight)), const(self._drawn(outputs)))

    def _drawn(self, *extents: int) -> Array:
        return self.random.standard_normal(extents, np.float32)
