"""Activation functions."""

import math
from collections.abc import Mapping

from relax_egraph.errors import NotLowerable
from relax_egraph.ir import dims
from relax_egraph.ir.reference.activation import SELU_ALPHA, SELU_SCALE
from relax_egraph.lower.legalize.elementwise import (
    Legalize,
    Scalar,
    elementwise,
    numeric,
    table,
)
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


def _relu6(x: TirExpr) -> TirExpr:
    return te.minimum(te.maximum(numeric("nn.relu6", x), 0), 6)


def _selu(x: TirExpr) -> TirExpr:
    negative = te.expm1(x) * te.const(SELU_ALPHA, x.dtype)
    return te.select(x > 0, x, negative) * te.const(SELU_SCALE, x.dtype)


def leakyrelu(data: te.Tensor, *, alpha: float) -> te.Tensor:
    """``x`` if positive, else ``alpha · x``."""

    def scalar(x: TirExpr) -> TirExpr:
        return te.select(x > 0, x, x * te.const(alpha, x.dtype))

    return elementwise("leakyrelu", scalar, data)


def prelu(data: te.Tensor, alpha: te.Tensor, *, axis: int) -> te.Tensor:
    """``x`` if positive, else ``alpha[i] · x`` at index ``i`` of `axis`."""
    place = axis % len(data.shape)
    if not dims.equal(data.shape[place], alpha.shape[0]):
        raise NotLowerable("whether alpha fits is known only at run time")
    return te.compute(
        data.shape, lambda *i: te.select(data[i] > 0, data[i], data[i] * alpha[i[place]]), "prelu"
    )


def softplus(data: te.Tensor, *, beta: float, threshold: float) -> te.Tensor:
    """``(max(z, 0) + ln(1 + e^-|z|)) / beta`` for ``z = beta·x``, which does not overflow."""
    steepness, limit = te.const(beta, data.dtype), te.const(threshold, data.dtype)

    def scalar(x: TirExpr) -> TirExpr:
        z = x * steepness
        soft = te.maximum(z, 0) + te.log1p(te.exp(te.abs(z) * -1))
        return te.select(z > limit, x, soft / steepness)

    return elementwise("softplus", scalar, data)


SCALARS: Mapping[str, Scalar] = {
    "nn.relu": _relu,
    "nn.relu6": _relu6,
    "nn.selu": _selu,
    "nn.gelu": _gelu,
    "nn.gelu_tanh": _gelu_tanh,
    "nn.silu": _silu,
}

LEGALIZE: Mapping[str, Legalize] = {
    **table(SCALARS),
    "nn.leakyrelu": leakyrelu,
    "nn.prelu": prelu,
    "nn.softplus": softplus,
}
