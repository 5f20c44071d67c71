"""Operators of the domain ``com.microsoft``, from its optimizer of transformers."""

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of, info_of
from relax_egraph.frontends.building.heads import (
    Masking,
    in_one,
    joined,
    rows_of,
    shape_of,
    swap_heads,
)
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.frontends.onnx.signatures import takes
from relax_egraph.ir import dims
from relax_egraph.ir.expr import Expr, ShapeExpr, Tuple

DOMAIN = "com.microsoft"


# --- activations and products -----------------------------------------------------------


@converts("Gelu", domain=DOMAIN, signature=takes(1, 1))
def gelu(node: Node) -> Expr:
    """``x/2 · (1 + erf(x/√2))``."""
    return node.emit("nn.gelu", node[0])


@converts("BiasGelu", domain=DOMAIN, signature=takes(2, 2))
def bias_gelu(node: Node) -> Expr:
    """The same of ``x + bias``."""
    return node.emit("nn.gelu", node.emit("add", node[0], node[1]))


@converts("FastGelu", domain=DOMAIN, signature=takes(1, 2))
def fast_gelu(node: Node) -> Expr:
    """Its approximation by tanh, of ``x`` or ``x + bias``."""
    x = node.emit("add", node[0], node[1]) if node.has(1) else node[0]
    return node.emit("nn.gelu_tanh", x)


@converts("QuickGelu", domain=DOMAIN, signature=takes(1, 1, alpha=1.702))
def quick_gelu(node: Node) -> Expr:
    """``x · sigmoid(alpha · x)``."""
    x, alpha = node[0], node.scalar(node.attrs.number("alpha"), node.dtype(0))
    return node.emit("multiply", x, node.emit("sigmoid", node.emit("multiply", x, alpha)))


@converts(
    "FusedMatMul",
    domain=DOMAIN,
    signature=takes(2, 2, alpha=1.0, transA=0, transB=0, transBatchA=0, transBatchB=0),
)
def fused_matmul(node: Node) -> Expr:
    """``alpha · A' @ B'``, where the last two axes of a matrix may be transposed."""
    if node.attrs.integer("transBatchA") or node.attrs.integer("transBatchB"):
        raise ModelError("it transposes batch axes")
    out = node.emit("matmul", _transposed(node, 0, "transA"), _transposed(node, 1, "transB"))
    alpha = node.attrs.number("alpha")
    return out if alpha == 1 else node.emit("multiply", out, node.scalar(alpha, node.dtype(0)))


def _transposed(node: Node, place: int, name: str) -> Expr:
    rank = node.rank(place)
    if not node.attrs.integer(name) or rank < 2:
        return node[place]
    return node.emit("permute_dims", node[place], axes=(*range(rank - 2), rank - 1, rank - 2))


# --- normalisations ---------------------------------------------------------------------


@converts("SkipLayerNormalization", domain=DOMAIN, signature=takes(3, 5, epsilon=1e-12))
def skip_layer_norm(node: Node) -> tuple[Expr | None, ...]:
    """The layer norm of ``x + skip + bias``, and that sum as output 3."""
    whole = _whole(node, 4)
    beta = node[3] if node.has(3) else node.emit("zeros_like", node[2])
    epsilon, last = node.attrs.number("epsilon"), (node.rank(0) - 1,)
    out = node.emit("nn.layer_norm", whole, node[2], beta, axes=last, epsilon=epsilon)
    return out, None, None, whole


@converts("SkipSimplifiedLayerNormalization", domain=DOMAIN, signature=takes(3, 4, epsilon=1e-12))
def skip_rms_norm(node: Node) -> tuple[Expr | None, ...]:
    """The RMS norm of ``x + skip + bias``, and that sum as output 3."""
    whole = _whole(node, 3)
    epsilon, last = node.attrs.number("epsilon"), (node.rank(0) - 1,)
    out = node.emit("nn.rms_norm", whole, node[2], axes=last, epsilon=epsilon)
    return out, None, None, whole


def _whole(node: Node, bias: int) -> Expr:
    """The sum of the first two operands, and of operand `bias` if present."""
    whole = node.emit("add", node[0], node[1])
    return node.emit("add", whole, node[bias]) if node.has(bias) else whole


_PLAIN = takes(2, 2, axis=-1, epsilon=1e-5, stash_type=1)


@converts("SimplifiedLayerNormalization", signature=_PLAIN)
@converts("SimplifiedLayerNormalization", domain=DOMAIN, signature=_PLAIN)
def rms_norm(node: Node) -> tuple[Expr, ...]:
    """The RMS norm over trailing axes; the reciprocal root mean square is output 1."""
    axes = tuple(range(node.axis(), node.rank(0)))
    epsilon, dtype = node.attrs.number("epsilon"), node.dtype(0)
    scale = node.cast(node[1], dtype)
    out = node.emit("nn.rms_norm", node[0], scale, axes=axes, epsilon=epsilon)
    if not any(node.outputs[1:]):
        return (out,)
    squares = node.emit("square", node.cast(node[0], "float32"))
    mean = node.emit("mean", squares, axis=axes, keepdims=True)
    least = node.scalar(epsilon, "float32")
    return out, node.emit("rsqrt", node.emit("add", mean, least))


# --- attention --------------------------------------------------------------------------

_KEY, _VALUE, _BIAS, _PADDING, _SCORES, _PAST_KEY, _PAST_VALUE = range(1, 8)


@converts(
    "MultiHeadAttention",
    domain=DOMAIN,
    signature=takes(1, 10, mask_filter_value=-10000.0, unidirectional=0),
)
def multi_head_attention(node: Node) -> tuple[Expr | None, ...]:
    """Attention on separate or packed queries, keys and values, with past ones prepended."""
    if node.has(8) or node.has(9):
        raise ModelError("it has a length of the past or a cache of beams, operands 8 and 9")
    query, key, value = _parts(node)
    keys, values = swap_heads(node, key), swap_heads(node, value)
    if node.has(_PAST_KEY):
        keys = node.emit("concat", Tuple((node[_PAST_KEY], keys)), axis=2)
        values = node.emit("concat", Tuple((node[_PAST_VALUE], values)), axis=2)
        key, value = swap_heads(node, keys), swap_heads(node, values)
    where = "BottomRight" if node.attrs.integer("unidirectional") else None
    masking = Masking(_additive(node, dtype_of(query)), None, where)
    scale = node.attrs.schema_default("scale") or None
    return joined(node, in_one(node, query, key, value, masking, scale)), keys, values


def _parts(node: Node) -> tuple[Expr, Expr, Expr]:
    """Queries, keys and values as (batch, sequence, head, element)."""
    if node.rank(0) == 5:
        query, key, value = (_unpacked(node, 0, k) for k in range(3))
        return query, key, value
    if node.has(_KEY) and node.rank(_KEY) == 5:
        key, value = (_unpacked(node, _KEY, k) for k in range(2))
        return _split(node, node[0], 0), key, value
    begin = 0
    rows: list[Expr] = []
    for place in (0, _KEY, _VALUE):
        x = node[place]
        if node.rank(place) == 4:
            rows.append(swap_heads(node, x))
            continue
        rows.append(_split(node, x, begin))
        width = shape_of(x)[2]
        if not isinstance(width, int) and node.has(_BIAS):
            raise ModelError("how the bias is split is known only at run time")
        begin += width if isinstance(width, int) else 0
    query, key, value = rows
    return query, key, value


def _unpacked(node: Node, place: int, part: int) -> Expr:
    """One part of operand `place`, which is packed as (…, head, part, element)."""
    if node.has(_BIAS):
        raise ModelError("it has a bias for packed operands")
    return node.emit("take", node[place], node.scalar(part, "int64"), axis=3)


def _split(node: Node, x: Expr, begin: int) -> Expr:
    """`x` in heads, plus its part of the bias, from `begin` on."""
    if node.has(_BIAS):
        end = dims.add(shape_of(x)[2], begin)
        cut = ShapeExpr((begin,)), ShapeExpr((end,))
        x = node.emit("add", x, node.emit("strided_slice", node[_BIAS], *cut, axes=(0,)))
    return rows_of(node, x, node.attrs.integer("num_heads"))


def _additive(node: Node, dtype: str) -> Expr | None:
    """The bias that is added to the scores."""
    scores = node[_SCORES] if node.has(_SCORES) else None
    if not node.has(_PADDING):
        return scores
    mask, rank = node[_PADDING], node.rank(_PADDING)
    if rank not in (2, 3):
        raise ModelError(f"its key_padding_mask has rank {rank}, needs 2 or 3")
    visible = node.emit("not_equal", mask, node.scalar(0, dtype_of(mask)))
    hidden = node.scalar(node.attrs.number("mask_filter_value"), dtype)
    bias = node.emit("where", visible, node.scalar(0, dtype), hidden)
    bias = node.emit("expand_dims", bias, axis=(1, 2) if rank == 2 else 1)
    if scores is None:
        return bias
    if info_of(scores).ndim != 4:
        raise ModelError(f"its attention_bias has rank {info_of(scores).ndim}, needs 4")
    return node.emit("add", scores, bias)
