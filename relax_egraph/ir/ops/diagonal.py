"""Matrices that are decided by the distance to a diagonal."""

from relax_egraph.errors import IllTyped
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.create import extent, integer, known_dtype
from relax_egraph.ir.struct_info import PrimStructInfo, StructInfo, TensorStructInfo, tensor


@op()
def eye(
    n: PrimStructInfo,
    m: PrimStructInfo | None = None,
    k: PrimStructInfo | None = None,
    *,
    dtype: str = "float32",
) -> StructInfo:
    """``out[i, j] = 1`` where ``j = i + k``, else 0: `n` rows, `m` columns, by default `n`."""
    rows = extent("eye", "n", n)
    columns = rows if m is None else extent("eye", "m", m)
    _diagonal("eye", k)
    known = None if rows is None or columns is None else (rows, columns)
    return tensor(known, known_dtype("eye", dtype), 2)


@op()
def eye_like(
    x: TensorStructInfo, k: PrimStructInfo | None = None, *, dtype: str | None = None
) -> StructInfo:
    """``out[i, j] = 1`` where ``j = i + k``, else 0, with the shape of `x`."""
    if x.ndim not in (-1, 2):
        raise IllTyped(f"R.eye_like of {x}: needs a tensor of rank 2")
    _diagonal("eye_like", k)
    return tensor(x.dims, known_dtype("eye_like", dtype) if dtype else x.dtype, 2)


@op()
def tril(x: TensorStructInfo, k: PrimStructInfo | None = None) -> StructInfo:
    """``out[…, i, j] = x[…, i, j]`` where ``j ≤ i + k``, else 0; `k` is 0 by default."""
    return _triangle("tril", x, k)


@op()
def triu(x: TensorStructInfo, k: PrimStructInfo | None = None) -> StructInfo:
    """``out[…, i, j] = x[…, i, j]`` where ``j ≥ i + k``, else 0; `k` is 0 by default."""
    return _triangle("triu", x, k)


def _triangle(name: str, x: TensorStructInfo, k: PrimStructInfo | None) -> StructInfo:
    if x.ndim in (0, 1):
        raise IllTyped(f"R.{name} of {x}: needs a tensor of rank 2 or more")
    _diagonal(name, k)
    return tensor(x.dims, x.dtype, x.ndim)


def _diagonal(name: str, k: PrimStructInfo | None) -> None:
    if k is not None:
        integer(name, "k", k)
