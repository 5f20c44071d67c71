"""Layers of transformers as torch runs them in one operator, where it needs no gradients."""

import math

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.building.heads import (
    Masking,
    in_one,
    in_parts,
    joined,
    rows_of,
    shape_of,
    swap_heads,
)
from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.operators.products import affine
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, ShapeExpr


@converts("aten._transformer_encoder_layer_fwd.default")
def encoder_layer(node: Node) -> Expr:
    """Self-attention, then two linear layers; each is added to what it takes."""
    src = node["src"]
    first = node.flag("norm_first")
    x = _norm(node, src, 1) if first else src
    query, key, value = (
        rows_of(node, x, node.integer("num_heads")) for x in _projected(node, x, x, x)
    )
    masking = _masking(node, src)
    attended = joined(node, in_one(node, query, key, value, masking, None))
    x = node.emit("add", affine(node, attended, node["proj_weight"], node["proj_bias"]), src)
    if not first:
        x = _norm(node, x, 1)
    inner = _norm(node, x, 2) if first else x
    inner = affine(node, inner, node["ffn_weight_1"], node["ffn_bias_1"])
    inner = node.emit("nn.gelu" if node.flag("use_gelu") else "nn.relu", inner)
    x = node.emit("add", affine(node, inner, node["ffn_weight_2"], node["ffn_bias_2"]), x)
    return x if first else _norm(node, x, 2)


@converts("aten._native_multi_head_attention.default")
def multi_head_attention(node: Node) -> tuple[Expr, Expr]:
    """Attention with the projections around it, and its weights, by head or their mean."""
    operands = node["query"], node["key"], node["value"]
    query, key, value = rows = [
        rows_of(node, x, node.integer("num_head")) for x in _projected(node, *operands)
    ]
    masking = _masking(node, operands[0])
    if node.flag("need_weights"):
        query, key, value = (swap_heads(node, x) for x in rows)
        scores = in_parts(node, query, key, value, masking, None)
        attended, weights = swap_heads(node, scores.out), scores.shares
        if node.flag("average_attn_weights"):
            weights = node.emit("mean", weights, axis=(1,))
    else:
        attended = in_one(node, query, key, value, masking, None)
        weights = node.emit("zeros", ShapeExpr((0,)), dtype=dtype_of(attended))
    out = affine(node, joined(node, attended), node["proj_weight"], node["proj_bias"])
    return out, weights


def _projected(node: Node, query: Expr, key: Expr, value: Expr) -> tuple[Expr, ...]:
    """The three projections, whose weights are one matrix; of one operand they are one product."""
    weight, bias = node["qkv_weight"], node["qkv_bias"]
    thirds = {"indices_or_sections": 3}
    if query is key is value:
        both = affine(node, query, weight, bias)
        return node.fields(node.emit("split", both, axis=2, **thirds))
    weights = node.fields(node.emit("split", weight, axis=0, **thirds))
    biases = node.fields(node.emit("split", bias, axis=0, **thirds))
    each = zip((query, key, value), weights, biases, strict=True)
    return tuple(affine(node, x, w, b) for x, w, b in each)


_OF_QUERIES, _OF_KEYS, _OF_BOTH = 0, 1, 2
"""What a mask has axes for: (query, key), (batch, key), or (batch, head, query, key)."""


def _masking(node: Node, query: Expr) -> Masking:
    """The mask as a bias: keys where it is not 0 are hidden; NaN for a query that sees none."""
    mask = node.get("mask")
    if mask is None:
        return Masking()
    kind = node.integer("mask_type") if node.has("mask_type") else _OF_BOTH
    batch, length, _ = shape_of(query)
    shapes: dict[int, tuple[Dim, ...]] = {
        _OF_QUERIES: (1, 1, length, length),
        _OF_KEYS: (batch, 1, 1, length),
    }
    if kind == _OF_BOTH:
        if node.rank("mask") != len("bhqk"):
            raise ModelError(f"its mask is of rank {node.rank('mask')}, needs rank 4")
        shape = node.shape("mask")
    else:
        shape = shapes[kind]
    if not dims.equal(dims.product(shape), dims.product(node.shape("mask"))):
        raise ModelError("its mask does not fit the sequences")
    dtype = dtype_of(query)
    hides = node.reshaped(node.cast(mask, "bool"), shape)
    hidden, shown = node.scalar(-math.inf, dtype), node.scalar(0, dtype)
    return Masking(node.emit("where", hides, hidden, shown))


def _norm(node: Node, x: Expr, number: int) -> Expr:
    """The layer norm `number` of an encoder layer."""
    gamma, beta = node[f"norm_weight_{number}"], node[f"norm_bias_{number}"]
    epsilon = float(node.number("eps"))
    return node.emit("nn.layer_norm", x, gamma, beta, axes=(2,), epsilon=epsilon)
