"""Scaled dot-product attention: scores, their softmax, and its product with the values."""

import math
from collections.abc import Mapping

from relax_egraph.errors import NotLowerable
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.legalize.elementwise import Legalize, broadcast, element
from relax_egraph.lower.legalize.norm import softmax
from relax_egraph.lower.legalize.proven import need_equal
from relax_egraph.tir import te
from relax_egraph.tir.expr import TirExpr, TirVar, from_dim
from relax_egraph.tir.tensor import Reduction


def attention(
    query: te.Tensor,
    key: te.Tensor,
    value: te.Tensor,
    bias: te.Tensor | None = None,
    *,
    scale: float | None,
    causal_mask: str | None,
    window_size: int | None,
) -> te.Tensor:
    """Products, scores, their softmax, and its product with the values, for all query-key pairs.

    In float32 they are scheduled together and never stored, see `schedule.attention`.
    """
    batch, queries, heads, size = query.shape
    keys = key.shape[1]
    need_equal((batch, keys, size), (key.shape[0], value.shape[1], key.shape[3]))
    need_equal((batch,), value.shape[:1])
    shape = (batch, heads, queries, keys)
    if bias is not None:
        need_equal(broadcast(bias.shape, shape), shape)
        need_equal(bias.shape[3:], (keys,))
    of_key, of_value = _heads_served(heads, key), _heads_served(heads, value)
    k = te.reduce_axis(size)

    def product(b: TirVar, n: TirVar, i: TirVar, j: TirVar) -> Reduction:
        return te.sum(query[b, i, n, k] * key[b, j, n // of_key, k], k)

    products = te.compute(shape, product, "attention_product")
    factor = _factor(size, scale, query.dtype)

    def score(*at: TirVar) -> TirExpr:
        scaled = products[at] * factor
        shifted = scaled if bias is None else scaled + element(bias, shape, at)
        if causal_mask is None:
            return shifted
        is_seen = _seen(at[2], at[3], queries, keys, causal_mask, window_size)
        return te.select(is_seen, shifted, te.const(-math.inf, query.dtype))

    shares = softmax(te.compute(shape, score, "attention_score"), axis=-1)
    j = te.reduce_axis(keys)

    def attended(b: TirVar, i: TirVar, n: TirVar, e: TirVar) -> Reduction:
        return te.sum(shares[b, n, i, j] * value[b, j, n // of_value, e], j)

    return te.compute((batch, queries, heads, value.shape[3]), attended, "attention")


def _heads_served(heads: Dim, x: te.Tensor) -> TirExpr:
    """The number of query heads that each head of `x` serves."""
    own = x.shape[2]
    if dims.equal(heads, own):
        return from_dim(1)
    if own == 0 or not dims.divides(own, heads):
        raise NotLowerable("whether the heads divide into groups is known only at run time")
    return from_dim(dims.floordiv(heads, own))


def _factor(size: Dim, scale: float | None, dtype: str) -> TirExpr:
    if scale is not None:
        return te.const(scale, dtype)
    if isinstance(size, int):
        return te.const(1 / math.sqrt(size) if size else math.inf, dtype)
    return te.rsqrt(te.cast(from_dim(size), dtype))


def _seen(
    i: TirVar, j: TirVar, queries: Dim, keys: Dim, causal_mask: str, window_size: int | None
) -> TirExpr:
    """Whether query `i` may attend to key `j`."""
    last: TirExpr = i
    if causal_mask == "BottomRight":
        offset = dims.sub(dims.maximum(queries, keys), dims.minimum(queries, keys))
        last = i + from_dim(offset)
    if window_size is None:
        return j <= last
    return te.logical_and(j <= last, last - j < window_size)


LEGALIZE: Mapping[str, Legalize] = {
    "nn.attention": attention,
    "nn.attention_bias": attention,
}
