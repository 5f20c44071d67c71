"""The operators of neural networks."""

import math
from collections.abc import Mapping

from relax_egraph.lower.legalize.elementwise import Scalar
from relax_egraph.lower.legalize.reduce import without
from relax_egraph.tir import te
from relax_egraph.tir.expr import TirExpr


def _relu(x: TirExpr) -> TirExpr:
    return te.maximum(x, 0)


def _gelu(x: TirExpr) -> TirExpr:
    scaled = x * te.const(math.sqrt(0.5), x.dtype)
    return x * 0.5 * (te.erf(scaled) + 1)


def _gelu_tanh(x: TirExpr) -> TirExpr:
    inner = (x + x * x * x * te.const(0.044715, x.dtype)) * te.const(
        math.sqrt(2 / math.pi), x.dtype
    )
    return x * 0.5 * (te.tanh(inner) + 1)


def _silu(x: TirExpr) -> TirExpr:
    return x * te.sigmoid(x)


SCALARS: Mapping[str, Scalar] = {
    "nn.relu": _relu,
    "nn.gelu": _gelu,
    "nn.gelu_tanh": _gelu_tanh,
    "nn.silu": _silu,
}
"""The elementwise operators: the meaning for one element."""


def softmax(x: te.Tensor, *, axis: int) -> te.Tensor:
    """Four tensors: the maximum, ``exp(x - max)``, its sum, and the quotient."""
    place = axis % len(x.shape)
    extent, rest = x.shape[place], without(x.shape, (place,))

    def at(reduced: te.Tensor, i: tuple[TirExpr, ...]) -> TirExpr:
        return reduced[without(i, (place,))]

    def row(source: te.Tensor, i: tuple[TirExpr, ...], k: TirExpr) -> TirExpr:
        return source[(*i[:place], k, *i[place:])]

    k, r = te.reduce_axis(extent), te.reduce_axis(extent)
    top = te.compute(rest, lambda *i: te.max(row(x, i, k), k), "softmax_max")
    e = te.compute(x.shape, lambda *i: te.exp(x[i] - at(top, i)), "softmax_exp")
    total = te.compute(rest, lambda *i: te.sum(row(e, i, r), r), "softmax_sum")
    return te.compute(x.shape, lambda *i: e[i] / at(total, i), "softmax")
