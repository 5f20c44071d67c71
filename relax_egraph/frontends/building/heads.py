"""Attention on queries, keys and values that are split into heads.

There are two layouts: *rows* are (batch, sequence, head, element), *heads* are (batch, head,
sequence, element).
"""

import math
from dataclasses import dataclass

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import Builder, dtype_of, info_of
from relax_egraph.frontends.building.dim_tensors import number_of
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, ShapeExpr
from relax_egraph.ir.struct_info import Shape


def swap_heads(b: Builder, x: Expr) -> Expr:
    """Rows as heads, or heads as rows."""
    return b.emit("permute_dims", x, axes=(0, 2, 1, 3))


def rows_of(b: Builder, x: Expr, heads: int) -> Expr:
    """(batch, sequence, hidden) as rows of `heads` heads."""
    if heads < 1:
        raise ModelError(f"it has {heads} heads, needs 1 or more")
    batch, sequence, hidden = shape_of(x)
    each = dims.floordiv(hidden, heads)
    if dims.distinct(dims.mul(each, heads), hidden):
        raise ModelError(f"{dims.text(hidden)} elements do not divide into {heads} heads")
    return b.emit("reshape", x, ShapeExpr((batch, sequence, heads, each)))


def joined(b: Builder, rows: Expr) -> Expr:
    """Rows as (batch, sequence, hidden)."""
    batch, sequence, heads, each = shape_of(rows)
    return b.emit("reshape", rows, ShapeExpr((batch, sequence, dims.mul(heads, each))))


def shape_of(x: Expr) -> Shape:
    """The extents of `x`."""
    shape = info_of(x).dims
    if shape is None:
        raise ModelError("the shape of an operand is not known")
    return shape


@dataclass(frozen=True, slots=True)
class Masking:
    """The keys that a query sees, by an additive `bias` of rank 4 and by options of the kernel.

    `dead` marks queries that see no key, as (batch, head, query, 1); ``None`` if there are none.
    """

    bias: Expr | None = None
    dead: Expr | None = None
    causal_mask: str | None = None
    window_size: int | None = None


def biased(b: Builder, bias: Expr) -> Masking:
    """A mask by `bias` alone, which may hide all keys of a query."""
    greatest = b.emit("max", bias, axis=-1, keepdims=True)
    lowest = b.scalar(-math.inf, dtype_of(bias))
    return Masking(bias, b.emit("equal", greatest, lowest))


def in_one(
    b: Builder, query: Expr, key: Expr, value: Expr, masking: Masking, scale: float | None
) -> Expr:
    """Attention by one operator, from rows to rows."""
    operands = [query, key, value]
    if masking.bias is not None:
        operands.append(b.cast(masking.bias, dtype_of(query)))
    out = b.emit(
        "nn.attention",
        *operands,
        scale=scale,
        causal_mask=masking.causal_mask,
        window_size=masking.window_size,
    )
    return out if masking.dead is None else _blank(b, swap_heads(b, masking.dead), out)


@dataclass(frozen=True, slots=True)
class Scores:
    """Attention in steps: the scores after each step, and the result.

    `raw`, `capped`, `masked` and `shares` (after the softmax) are (batch, head, query, key); the
    result has the layout of heads.
    """

    raw: Expr
    capped: Expr
    masked: Expr
    shares: Expr
    out: Expr


def in_parts(
    b: Builder,
    query: Expr,
    key: Expr,
    value: Expr,
    masking: Masking,
    scale: float | None,
    *,
    softcap: float = 0.0,
    precision: str | None = None,
) -> Scores:
    """Attention of heads in steps; the softmax is computed in `precision`."""
    dtype = dtype_of(query)
    scaled = b.emit("multiply", query, scale_of(b, shape_of(query)[3], scale, dtype))
    raw = _by_group(b, scaled, b.emit("permute_dims", key, axes=(0, 1, 3, 2)))
    capped = raw
    if softcap:
        cap = b.scalar(softcap, dtype)
        bent = b.emit("tanh", b.emit("divide", raw, cap))
        capped = b.emit("multiply", bent, cap)
    masked = capped if masking.bias is None else b.emit("add", capped, masking.bias)
    shares = b.cast(b.emit("nn.softmax", b.cast(masked, precision or dtype)), dtype)
    if masking.dead is not None:
        shares = _blank(b, masking.dead, shares)
    return Scores(raw, capped, masked, shares, _by_group(b, shares, value))


def scale_of(b: Builder, size: Dim, scale: float | None, dtype: str) -> Expr:
    """`scale`, by default ``1 / √size``, as a tensor of rank 0."""
    if scale is not None:
        return b.scalar(scale, dtype)
    if isinstance(size, int):
        return b.scalar(1 / math.sqrt(max(size, 1)), dtype)
    return b.emit("rsqrt", number_of(b, size, dtype))


def _by_group(b: Builder, x: Expr, y: Expr) -> Expr:
    """``x @ y`` for heads, where each head of `y` serves a run of heads of `x`."""
    batch, heads, rows, size = shape_of(x)
    others, columns = shape_of(y)[1], shape_of(y)[3]
    if dims.equal(heads, others):
        return b.emit("matmul", x, y)
    group = dims.floordiv(heads, others)
    if dims.distinct(dims.mul(group, others), heads):
        raise ModelError(f"{dims.text(heads)} heads are no multiple of {dims.text(others)}")
    runs = ShapeExpr((batch, others, dims.mul(group, rows), size))
    out = b.emit("matmul", b.emit("reshape", x, runs), y)
    return b.emit("reshape", out, ShapeExpr((batch, heads, rows, columns)))


def _blank(b: Builder, dead: Expr, x: Expr) -> Expr:
    """`x` with 0 where `dead` holds."""
    return b.emit("where", dead, b.scalar(0, dtype_of(x)), x)
