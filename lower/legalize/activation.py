"""The activations of neural networks."""

import math
from collections.abc import Mapping

from relax_egraph.lower.legalize.elementwise import Legalize, Scalar, table
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

LEGALIZE: Mapping[str, Legalize] = table(SCALARS)
