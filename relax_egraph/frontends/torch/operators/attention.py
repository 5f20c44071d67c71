"""Scaled dot-product attention, and its gradients."""

import math

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.building.heads import (
    Masking,
    biased,
    in_one,
    scale_of,
    shape_of,
    swap_heads,
)
from relax_egraph.frontends.building.positions import counted
from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import computed
from relax_egraph.ir.expr import Expr, ShapeExpr


@converts("aten.scaled_dot_product_attention.default")
def attention(node: Node) -> Expr:
    """Attention of heads, (…, head, sequence, element)."""
    return _attended(node)


def _attended(node: Node) -> Expr:
    """Attention by one operator; 0 for queries that see no key."""
    _check_dropout(node)
    batch = tuple(node.out_shape[:-2])
    query, key, value = (_in_batch(node, name, batch) for name in ("query", "key", "value"))
    bias = _bias(node, batch, shape_of(query)[2], shape_of(key)[2], dtype_of(query))
    causal = "TopLeft" if node.flag("is_causal") else None
    masking = Masking(causal_mask=causal) if bias is None else _masked(node, bias, causal)
    query, key, value = (swap_heads(node, x) for x in (query, key, value))
    out = swap_heads(node, in_one(node, query, key, value, masking, _scale(node)))
    return node.reshaped(out, node.out_shape)


def _masked(node: Node, bias: Expr, causal: str | None) -> Masking:
    masking = biased(node, bias)
    return Masking(masking.bias, masking.dead, causal)


def _check_dropout(node: Node) -> None:
    if node.number("dropout_p"):
        raise ModelError(f"it drops elements at random, dropout_p is {node.number('dropout_p')}")


def _scale(node: Node) -> float | None:
    return float(node.number("scale")) if node.has("scale") else None


def _in_batch(node: Node, name: str, batch: tuple[Dim, ...]) -> Expr:
    """An operand as (batch, head, sequence, element); heads of keys and values may be fewer."""
    x, shape = node[name], node.shape(name)
    fewer = node.arguments.get("enable_gqa") and name != "query"
    heads = (*batch[:-1], shape[-3]) if fewer else batch or (1,)
    wanted = (*heads, *shape[-2:])
    if len(shape) != len(wanted) or not all(map(dims.equal, shape, wanted)):
        x = node.emit("broadcast_to", x, ShapeExpr(wanted))
    return node.reshaped(x, (dims.product(wanted[:-3]), *wanted[-3:]))


def _bias(node: Node, batch: tuple[Dim, ...], queries: Dim, keys: Dim, dtype: str) -> Expr | None:
    """The mask as a bias of rank 4; ``None`` if there is none."""
    mask = node.get("attn_mask")
    if mask is None:
        return None
    if dtype_of(mask) == "bool":
        shown, hidden = node.scalar(0, dtype), node.scalar(-math.inf, dtype)
        mask = node.emit("where", mask, shown, hidden)
    mask, shape = node.cast(mask, dtype), node.shape("attn_mask")
    if len(batch) > 2:
        mask = node.emit("broadcast_to", mask, ShapeExpr((*batch, queries, keys)))
        return node.reshaped(mask, (dims.product(batch[:-1]), batch[-1], queries, keys))
    if not dims.equal(shape[-1], keys):
        mask = node.emit("broadcast_to", mask, ShapeExpr((*shape[:-1], keys)))
    return node.reshaped(mask, (*(1,) * (4 - len(shape)), *shape[:-1], keys))


# --- with what training keeps -----------------------------------------------------------


@converts("aten._scaled_dot_product_flash_attention_for_cpu.default")
def flash_attention(node: Node) -> tuple[Expr, Expr]:
    """Attention of heads, and the logarithm of the sum of the exponentials of its scores."""
    scores = _scores(node)
    greatest = node.emit("max", scores, axis=-1, keepdims=True)
    dead = node.emit("equal", greatest, node.scalar(-math.inf, dtype_of(scores)))
    base = node.emit("where", dead, node.scalar(0, dtype_of(scores)), greatest)
    powers = node.emit("exp", node.emit("subtract", scores, base))
    total = node.emit("log", node.emit("sum", powers, axis=-1, keepdims=True))
    logarithm = node.emit("squeeze", node.emit("add", base, total), axis=-1)
    return _attended(node), logarithm


@converts("aten._scaled_dot_product_flash_attention_for_cpu_backward.default")
def flash_attention_gradients(node: Node) -> tuple[Expr, ...]:
    """The gradients of query, key and value."""
    _check_dropout(node)
    scores = _scores(node)
    wide = dtype_of(scores)
    grad, query, key, value, out = (
        node.cast(node[name], wide) for name in ("grad_out", "query", "key", "value", "out")
    )
    dead = node.emit("equal", scores, node.scalar(-math.inf, wide))
    kept = node.emit("expand_dims", node.cast(node["logsumexp"], wide), axis=-1)
    powers = node.emit("exp", node.emit("subtract", scores, kept))
    shares = node.emit("where", dead, node.scalar(0, wide), powers)
    of_value = node.emit("matmul", _turned(node, shares), grad)
    of_shares = node.emit("matmul", grad, _turned(node, value))
    whole = node.emit("sum", node.emit("multiply", grad, out), axis=-1, keepdims=True)
    of_scores = node.emit("multiply", shares, node.emit("subtract", of_shares, whole))
    of_scores = node.emit("multiply", of_scores, _factor(node, wide))
    of_query = node.emit("matmul", of_scores, key)
    of_key = node.emit("matmul", _turned(node, of_scores), query)
    narrow = node.dtype("query")
    return tuple(node.cast(x, narrow) for x in (of_query, of_key, of_value))


def _scores(node: Node) -> Expr:
    """``query · keyᵀ · scale + bias``, in the dtype in which they are accumulated."""
    wide = computed(node.dtype("query"))
    query, key = (node.cast(node[name], wide) for name in ("query", "key"))
    scores = node.emit("matmul", query, _turned(node, key))
    scores = node.emit("multiply", scores, _factor(node, wide))
    shape = shape_of(scores)
    bias = _bias(node, shape[:-2], shape[-2], shape[-1], wide)
    if bias is not None:
        scores = node.emit("add", scores, bias)
    if not node.flag("is_causal"):
        return scores
    later = node.emit("greater", counted(node, shape[-1], 1, 2), counted(node, shape[-2], 0, 2))
    return node.emit("where", later, node.scalar(-math.inf, wide), scores)


def _factor(node: Node, dtype: str) -> Expr:
    return scale_of(node, node.shape("query")[-1], _scale(node), dtype)


def _turned(node: Node, x: Expr) -> Expr:
    return node.emit("permute_dims", x, axes=(0, 1, 3, 2))
