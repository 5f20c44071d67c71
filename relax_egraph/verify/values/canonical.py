"""Reference results of operators that do not depend on the positions of elements."""

from typing import Any

import numpy as np

from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.dtypes import is_float, name_of
from relax_egraph.ir.op import Op
from relax_egraph.verify.values.inputs import Array

_SUMS = frozenset(
    (
        *("sum", "mean", "prod", "variance", "std", "cumsum", "cumprod"),
        *("matmul", "outer", "einsum", "nn.attention", "nn.attention_bias"),
        *(f"nn.conv{rank}d{kind}" for rank in (1, 2, 3) for kind in ("", "_transpose")),
    )
)
"""Operators that add in an order that the kernel chooses."""

_LANES = 64


def once_rounded(op: Op, operands: list[Any], attrs: dict[str, Any]) -> Any:
    """The result of `op`, with equal results for equal elements at all positions.

    A sum is rounded once, independent of its order.  The operands of an elementwise operator are
    padded to whole vectors, since numpy computes the remainder of a vector by other code.
    """
    tensors = [o for o in operands if isinstance(o, np.ndarray)]
    if op.elementwise and tensors and len({t.shape for t in tensors}) == 1:
        shape, size = tensors[0].shape, tensors[0].size
        filled = [_filled(o) if isinstance(o, np.ndarray) else o for o in operands]
        return np.asarray(apply_op(op, filled, attrs))[:size].reshape(shape)
    floats = [t.dtype for t in tensors if is_float(name_of(t.dtype))]
    if op.name in _SUMS and floats and len(floats) == len(tensors):
        more = np.longdouble if floats[0] == np.float64 else np.float64
        dtype = np.dtype(attrs.get("out_dtype") or floats[0])
        wide = [o.astype(more) if isinstance(o, np.ndarray) else o for o in operands]
        with np.errstate(all="ignore"):
            return np.asarray(apply_op(op, wide, attrs)).astype(dtype)
    return apply_op(op, operands, attrs)


def _filled(x: Array) -> Array:
    filled = np.ones(-(-x.size // _LANES) * _LANES, x.dtype)
    filled[: x.size] = x.ravel()
    return filled
