"""Scaled dot-product attention, in the namespace ``R.nn``."""

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.operand_checks import has_rank, one_float, subject_of
from relax_egraph.ir.requirements import differ, misfits
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, shape_text, tensor


@op("nn")
def attention(
    query: TensorStructInfo,
    key: TensorStructInfo,
    value: TensorStructInfo,
    bias: TensorStructInfo | None = None,
    *,
    scale: float | None = None,
    causal_mask: str | None = None,
    window_size: int | None = None,
) -> StructInfo:
    """``out = softmax(query · keyᵀ · scale + bias) · value``, of (batch, sequence, head, element).

    `scale` is by default ``1 / √`` of the elements of a head.  Each head of `key` and `value`
    serves a run of heads of `query`, all of one length.  `bias` broadcasts to (batch, head,
    query, key), save in its last axis.  Under a `causal_mask`, query ``i`` sees the keys up to
    ``i`` ("TopLeft"), or up to ``i`` and the difference of both lengths ("BottomRight"), and of
    these the last `window_size`.  A query that sees none of its keys gets NaN.
    """
    return _attended("nn.attention", query, key, value, bias, causal_mask, window_size)


@op("nn")
def attention_bias(
    query: TensorStructInfo,
    key: TensorStructInfo,
    value: TensorStructInfo,
    bias: TensorStructInfo,
    *,
    scale: float | None = None,
    causal_mask: str | None = None,
    window_size: int | None = None,
) -> StructInfo:
    """``out = attention(query, key, value, bias)``, which is how some programs write it."""
    return _attended("nn.attention_bias", query, key, value, bias, causal_mask, window_size)


def _attended(
    name: str,
    query: TensorStructInfo,
    key: TensorStructInfo,
    value: TensorStructInfo,
    bias: TensorStructInfo | None,
    causal_mask: str | None,
    window_size: int | None,
) -> StructInfo:
    operands = {"query": query, "key": key, "value": value}
    if bias is not None:
        operands["bias"] = bias
    subject = subject_of(name, *operands.values())
    dtype = one_float(subject, *operands.values())
    for what, info in operands.items():
        has_rank(subject, what, info, 4)
    _check_mask(subject, causal_mask, window_size)
    q, k, v = query.dims, key.dims, value.dims
    if k is not None and v is not None:
        _equal(subject, "sequences of key and value", k[1], v[1])
    for what, kv in (("key", k), ("value", v)):
        if q is not None and kv is not None:
            _equal(subject, f"batches of query and {what}", q[0], kv[0])
            if _never_divides(kv[2], q[2]):
                raise IllTyped(
                    f"{subject}: the {dims.text(q[2])} heads of query are no multiple of "
                    f"the {dims.text(kv[2])} of {what}"
                )
    if q is not None and k is not None:
        _equal(subject, "heads of query and key, in elements,", q[3], k[3])
        _check_bias(subject, bias, (q[0], q[2], q[1], k[1]))
    return tensor(None if q is None or v is None else (*q[:3], v[3]), dtype, 4)


def _check_mask(subject: str, causal_mask: str | None, window_size: int | None) -> None:
    if causal_mask not in (None, "TopLeft", "BottomRight"):
        raise IllTyped(
            f'{subject}: causal_mask is {causal_mask!r}, needs "TopLeft", "BottomRight" or None'
        )
    if window_size is not None and (causal_mask is None or window_size < 1):
        raise IllTyped(
            f"{subject}: window_size is {window_size}, needs at least 1 and a causal_mask beside it"
        )


def _equal(subject: str, what: str, a: Dim, b: Dim) -> None:
    if differ(a, b):
        raise IllTyped(f"{subject}: the {what} differ: {dims.text(a)} and {dims.text(b)}")


def _never_divides(part: Dim, whole: Dim) -> bool:
    """Whether `whole` is proven not to be a multiple of `part`."""
    if part == 0:
        return differ(whole, 0)
    return differ(dims.mod(whole, part), 0)


def _check_bias(subject: str, bias: TensorStructInfo | None, wanted: tuple[Dim, ...]) -> None:
    known = None if bias is None else bias.dims
    if known is None:
        return
    if any(map(misfits, known[:3], wanted)) or differ(known[3], wanted[3]):
        raise IllTyped(
            f"{subject}: bias has shape {shape_text(known)}, needs {shape_text(wanted)}, "
            "where any extent but the last may be 1"
        )
