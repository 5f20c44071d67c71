"""Elementwise functions of one operand."""

from collections.abc import Mapping

from relax_egraph.lower.legalize.elementwise import Legalize, Scalar, numeric, table
from relax_egraph.tir import te
from relax_egraph.tir.expr import TirExpr


def _negative(x: TirExpr) -> TirExpr:
    # 0 - x is never -0.0.
    return x * -1 if x.dtype.startswith("float") else -numeric("negative", x)


def _abs(x: TirExpr) -> TirExpr:
    return x if x.dtype in ("bool", "uint8") else te.abs(x)


SCALARS: Mapping[str, Scalar] = {
    "abs": _abs,
    "negative": _negative,
    "exp": te.exp,
    "log": te.log,
    "sqrt": te.sqrt,
    "rsqrt": te.rsqrt,
    "tanh": te.tanh,
    "erf": te.erf,
    "sigmoid": te.sigmoid,
}


def astype(x: te.Tensor, *, dtype: str) -> te.Tensor:
    """``x`` converted to `dtype`; to ``bool``, whether it is not 0."""
    return te.compute(x.shape, lambda *i: te.cast(x[i], dtype), "astype")


LEGALIZE: Mapping[str, Legalize] = {**table(SCALARS), "astype": astype}
