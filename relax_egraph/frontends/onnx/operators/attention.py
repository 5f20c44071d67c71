"""The ONNX operators for attention and rotary position embedding."""

import math

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.building.heads import (
    Masking,
    Scores,
    biased,
    in_one,
    in_parts,
    joined,
    rows_of,
    shape_of,
    swap_heads,
)
from relax_egraph.frontends.building.positions import counted
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.frontends.onnx.tensors import dtype_of as dtype_named
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import computed
from relax_egraph.ir.expr import Expr, PrimValue, ShapeExpr, Tuple

_MASK, _PAST_KEY, _PAST_VALUE, _VALID = 3, 4, 5, 6


@converts("Attention")
def attention(node: Node) -> tuple[Expr | None, ...]:
    """Attention: one operator unless scores are output or modified; 0 for fully masked queries."""
    flat = node.rank(0) == 3
    query, key, value = (_rows(node, place) for place in range(3))
    value = node.cast(value, dtype_of(query))
    keys, values = swap_heads(node, key), swap_heads(node, value)
    if node.has(_PAST_KEY) != node.has(_PAST_VALUE):
        raise ModelError("of past_key and past_value it has only one")
    if node.has(_PAST_KEY):
        if node.has(_VALID):
            raise ModelError("it has both past_key and nonpad_kv_seqlen")
        keys = node.emit("concat", Tuple((node[_PAST_KEY], keys)), axis=2)
        values = node.emit("concat", Tuple((node[_PAST_VALUE], values)), axis=2)
        key, value = swap_heads(node, keys), swap_heads(node, values)
    masking = _masking(node, shape_of(query)[1], shape_of(key)[1], dtype_of(query))
    scale = node.attrs.schema_default("scale")
    softcap = node.attrs.schema_default("softcap") or 0.0
    precision = _precision(node, dtype_of(query))
    outputs_scores = len(node.outputs) > 3 and node.outputs[3]
    if not (outputs_scores or softcap or precision):
        out = in_one(node, query, key, value, masking, scale)
        return joined(node, out) if flat else swap_heads(node, out), keys, values, None
    masking = _by_bias(node, masking, shape_of(query)[1], shape_of(key)[1], dtype_of(query))
    scores = in_parts(
        node,
        swap_heads(node, query),
        keys,
        values,
        masking,
        scale,
        softcap=softcap,
        precision=precision,
    )
    out = joined(node, swap_heads(node, scores.out)) if flat else scores.out
    return out, keys, values, _score_output(node, scores)


def _rows(node: Node, place: int) -> Expr:
    """Queries, keys or values as (batch, sequence, head, element)."""
    if node.rank(place) == 4:
        return swap_heads(node, node[place])
    if node.rank(place) != 3:
        raise ModelError(f"operand {place} has rank {node.rank(place)}, needs 3 or 4")
    return rows_of(
        node, node[place], node.attrs.integer("kv_num_heads" if place else "q_num_heads")
    )


def _precision(node: Node, dtype: str) -> str | None:
    """The dtype of the softmax, if it differs from the one used by default."""
    code = node.attrs.schema_default("softmax_precision")
    precision = dtype_named(code) if code else dtype
    return None if precision in (dtype, computed(dtype)) else precision


def _score_output(node: Node, scores: Scores) -> Expr:
    """The value of output 3."""
    modes = (scores.raw, scores.capped, scores.masked, scores.shares)
    mode = node.attrs.integer("qk_matmul_output_mode")
    if not 0 <= mode < len(modes):
        raise ModelError(f"its qk_matmul_output_mode is {mode}, needs 0 to {len(modes) - 1}")
    return modes[mode]


# --- masks ------------------------------------------------------------------------------


def _masking(node: Node, queries: Dim, keys: Dim, dtype: str) -> Masking:
    """The mask of the operand and the attributes of `node`."""
    causal = bool(node.attrs.integer("is_causal"))
    left, right = _windows(node)
    plain = not node.has(_MASK) and not node.has(_VALID)
    if plain and not causal and left is None and right is None:
        return Masking()
    past = shape_of(node[_PAST_KEY])[2] if node.has(_PAST_KEY) else 0
    if plain and causal and dims.equal(dims.add(queries, past), keys):
        where = "BottomRight" if node.has(_PAST_KEY) else "TopLeft"
        return Masking(None, None, where, None if left is None else left + 1)
    if plain and causal and left is None and past == 0:
        return Masking(None, None, "TopLeft")
    visible = _visible_keys(node, queries, keys, past, causal=causal)
    mask = _mask(node, keys) if node.has(_MASK) else None
    if mask is not None and dtype_of(mask) == "bool":
        visible, mask = mask if visible is None else node.emit("logical_and", visible, mask), None
    bias = None if mask is None else node.cast(mask, dtype)
    if visible is not None:
        hidden = node.scalar(-math.inf, dtype)
        shown = node.scalar(0, dtype) if bias is None else bias
        bias = node.emit("where", visible, shown, hidden)
    assert bias is not None
    return biased(node, bias)


def _windows(node: Node) -> tuple[int | None, int | None]:
    """The numbers of keys before and after its own place that a query sees, if limited."""
    limits = [node.attrs.schema_default(f"{side}_window_size") for side in ("left", "right")]
    if any(limit is not None and limit < -1 for limit in limits):
        raise ModelError(f"its window sizes are {limits}, need -1 or more")
    left, right = (None if limit in (None, -1) else int(limit) for limit in limits)
    return left, right


def _by_bias(node: Node, masking: Masking, queries: Dim, keys: Dim, dtype: str) -> Masking:
    """`masking` as a bias, without options that only the kernel has."""
    if masking.causal_mask is None:
        return masking
    past = shape_of(node[_PAST_KEY])[2] if node.has(_PAST_KEY) else 0
    visible = _visible_keys(node, queries, keys, past, causal=True)
    assert visible is not None
    hidden, shown = node.scalar(-math.inf, dtype), node.scalar(0, dtype)
    return Masking(node.emit("where", visible, shown, hidden))


def _visible_keys(node: Node, queries: Dim, keys: Dim, past: Dim, *, causal: bool) -> Expr | None:
    """The keys that each query sees by position, as (batch, 1, query, key); ``None`` for all."""
    left, right = _windows(node)
    if causal:
        right = 0 if right is None else min(right, 0)
    valid = None
    conditions: list[Expr] = []
    places = counted(node, keys, 3, 4)
    if node.has(_VALID):
        valid = node.emit("expand_dims", node.cast(node[_VALID], "int64"), axis=(1, 2, 3))
        conditions.append(node.emit("less", places, valid))
    if left is not None or right is not None:
        ahead = node.emit("subtract", places, _own_places(node, queries, past, valid))
        if left is not None:
            conditions.append(node.emit("greater_equal", ahead, node.scalar(-left, "int64")))
        if right is not None:
            conditions.append(node.emit("less_equal", ahead, node.scalar(right, "int64")))
    if not conditions:
        return None
    visible, *others = conditions
    for other in others:
        visible = node.emit("logical_and", visible, other)
    return visible


def _own_places(node: Node, queries: Dim, past: Dim, valid: Expr | None) -> Expr:
    """The position of each query among the keys."""
    first, last = PrimValue(past), PrimValue(dims.add(past, queries))
    line = node.emit("arange", first, last, dtype="int64")
    own = node.emit("expand_dims", line, axis=(0, 1, 3))
    if valid is None:
        return own
    count = node.emit("shape_to_tensor", ShapeExpr((queries,)))
    return node.emit("add", own, node.emit("subtract", valid, count))


def _mask(node: Node, keys: Dim) -> Expr:
    """The mask with rank 4, extended to the number of keys by hidden ones."""
    mask = node[_MASK]
    rank = node.rank(_MASK)
    if rank > 4 or rank < 1:
        raise ModelError(f"its mask has rank {rank}, needs 1 to 4")
    if rank < 4:
        mask = node.emit("expand_dims", mask, axis=tuple(range(4 - rank)))
    *leading, width = shape_of(mask)
    if dims.equal(width, keys):
        return mask
    lacking = ShapeExpr((*leading, dims.sub(keys, width)))
    hidden = False if dtype_of(mask) == "bool" else -math.inf
    rest = node.emit("full", lacking, node.scalar(hidden, dtype_of(mask)))
    return node.emit("concat", Tuple((mask, rest)), axis=3)


# --- positions --------------------------------------------------------------------------


@converts("RotaryEmbedding")
def rotary_embedding(node: Node) -> Expr:
    """Pairs of elements, rotated by the angle of their position."""
    x, cos, sin = node[0], node[1], node[2]
    if node.has(3):
        cos, sin = (node.emit("take", angle, node[3], axis=0) for angle in (cos, sin))
    flat = node.rank(0) == 3
    if flat:
        x = rows_of(node, x, node.attrs.integer("num_heads"))
    _check_pairs(node, shape_of(x)[3], shape_of(cos)[-1])
    cos, sin = (node.emit("expand_dims", angle, axis=2 if flat else 1) for angle in (cos, sin))
    interleaved = bool(node.attrs.integer("interleaved"))
    out = node.emit("nn.rotary_embedding", x, cos, sin, interleaved=interleaved)
    return joined(node, out) if flat else out


def _check_pairs(node: Node, size: Dim, pairs: Dim) -> None:
    """Raise `ModelError` unless there is an angle for each rotated pair."""
    elements = node.attrs.integer("rotary_embedding_dim") or size
    if dims.distinct(dims.mul(pairs, 2), elements):
        raise ModelError(f"{dims.text(pairs)} angles are not for {dims.text(elements)} elements")
