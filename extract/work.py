"""The arithmetic of each operator: flops as a function of extents and attributes."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from relax_egraph.errors import ExtractionError
from relax_egraph.ir.expr import Attr
from relax_egraph.ir.op import OPS, Op
from relax_egraph.ir.operators import named
from relax_egraph.ir.subscripts import read_subscripts

Extents: TypeAlias = tuple[int, ...] | None
"""The extents of a tensor at the sizes of the symbols; ``None`` if unknown."""


@dataclass(frozen=True, slots=True)
class Applied:
    """An operator applied to tensors, in numbers; `result` is the first of several."""

    attrs: Mapping[str, Attr]
    operands: tuple[Extents, ...]
    result: Extents


Work: TypeAlias = Callable[[Applied], float]
"""Flops of one application; NaN if an extent that matters is unknown."""


def _count(extents: Extents) -> float:
    return math.nan if extents is None else math.prod(extents)


def each(flops: float) -> Work:
    """`flops` for each element of the result."""
    return lambda a: flops * _count(a.result)


def each_read(flops: float) -> Work:
    """`flops` for each element of the first operand, or of the result if there is none."""
    return lambda a: flops * _count(a.operands[0] if a.operands else a.result)


def none(applied: Applied) -> float:
    """No arithmetic: the operator moves or creates elements."""
    return 0.0


# --- operators with a formula -----------------------------------------------------------


def _matmul(a: Applied) -> float:
    x = a.operands[0]
    return math.nan if not x else 2 * _count(a.result) * x[-1]


def _conv(a: Applied) -> float:
    """Each element of the result sums over all weights of its output channel."""
    return 2 * _count(a.result) * _per_channel(a, "O")


def _conv_transpose(a: Applied) -> float:
    """Each element of the data is multiplied by all weights of its input channel."""
    return 2 * _count(a.operands[0]) * _per_channel(a, "I")


def _per_channel(a: Applied, letter: str) -> float:
    weight, layout = a.operands[1], a.attrs["kernel_layout"]
    if weight is None or not isinstance(layout, str):
        return math.nan
    return math.prod(e for e, axis in zip(weight, layout, strict=True) if axis != letter)


def _pool(a: Applied) -> float:
    size = a.attrs["pool_size"]
    assert isinstance(size, tuple)
    return _count(a.result) * math.prod(int(s) for s in size)


def _einsum(a: Applied) -> float:
    """One multiplication fewer than operands, and an addition, at each point of the loops."""
    shapes = [o for o in a.operands if o is not None]
    if len(shapes) < len(a.operands):
        return math.nan
    read = read_subscripts(str(a.attrs["subscripts"]), [len(s) for s in shapes])
    extents: dict[str, int] = {}
    for term, shape in zip(read.terms, shapes, strict=True):
        for label, extent in zip(term, shape, strict=True):
            extents[label] = max(extent, extents.get(label, 0))
    return max(1, len(shapes)) * math.prod(extents.values())


def _attention(a: Applied) -> float:
    """Two products of each query with each key, and the softmax of their scores."""
    query, key, value, *_ = a.operands
    if query is None or key is None or value is None:
        return math.nan
    batch, queries, heads, size = query
    scores = batch * heads * queries * key[1]
    return scores * (2 * size + 2 * value[3] + SOFTMAX)


def _recurrent(a: Applied) -> float:
    """A product with the recurrence for each element of the input, and its activation."""
    projected, recurrence, *_ = a.operands
    return math.nan if recurrence is None else _count(projected) * (2 * recurrence[1] + ACTIVATION)


ACTIVATION = 40
"""Flops of a gate of a recurrent layer: its sigmoid or hyperbolic tangent, and its use."""

SOFTMAX = 30
"""Flops of an element of a softmax: an exponential, two reductions, a division for the row."""

WORK: Mapping[str, Work] = {
    **dict.fromkeys(
        ("permute_dims", "reshape", "flatten", "broadcast_to", "expand_dims", "squeeze"), none
    ),
    "shape_of": none,
    **dict.fromkeys(
        ("concat", "stack", "split", "meshgrid", "tile", "repeat", "flip", "reverse_sequence"),
        none,
    ),
    "nn.batch_flatten": none,
    **dict.fromkeys(
        ("full", "full_like", "ones", "ones_like", "zeros", "zeros_like", "eye", "eye_like"),
        none,
    ),
    **dict.fromkeys(("arange", "one_hot", "tril", "triu"), each(1)),
    "hamming_window": each(30),
    "check_indices": each(2),
    **dict.fromkeys(("take", "gather_elements", "gather_nd", "index_tensor"), none),
    **dict.fromkeys(("strided_slice", "dynamic_strided_slice", "slice_scatter"), none),
    **dict.fromkeys(("scatter_elements", "scatter_nd", "index_put"), each(1)),
    "masked_fill": each(1),
    **dict.fromkeys(
        ("abs", "negative", "add", "ewise_add", "subtract", "multiply", "maximum", "minimum"),
        each(1),
    ),
    **dict.fromkeys(("greater", "less", "equal", "where", "astype", "nn.relu"), each(1)),
    **dict.fromkeys(("greater_equal", "less_equal", "not_equal"), each(1)),
    **dict.fromkeys(("square", "ceil", "floor", "round", "trunc", "isnan"), each(1)),
    **dict.fromkeys(("isfinite", "isinf", "sign", "clip", "nn.relu6"), each(2)),
    **dict.fromkeys(("nn.leakyrelu", "nn.prelu"), each(3)),
    **dict.fromkeys((f"bitwise_{kind}" for kind in ("and", "not", "or", "xor")), each(1)),
    **dict.fromkeys((f"logical_{kind}" for kind in ("and", "not", "or", "xor")), each(1)),
    **dict.fromkeys(("left_shift", "right_shift"), each(3)),
    **dict.fromkeys(("floor_divide", "floor_mod", "mod"), each(1000)),
    "ewise_fma": each(1.01),
    "divide": each(8),
    "sqrt": each(8),
    "rsqrt": each(10),
    "exp": each(20),
    "log": each(24),
    "sigmoid": each(28),
    "tanh": each(30),
    "erf": each(30),
    "power": each(240),
    "nn.gelu": each(32),
    "nn.gelu_tanh": each(34),
    "nn.silu": each(29),
    "nn.selu": each(26),
    "nn.softplus": each(80),
    "log_add_exp": each(80),
    **dict.fromkeys(("sin", "cos", "tan"), each(70)),
    **dict.fromkeys(("asin", "acos", "atan", "atan2"), each(80)),
    **dict.fromkeys(("sinh", "cosh", "asinh", "acosh", "atanh"), each(80)),
    **dict.fromkeys(("nn.softmax", "nn.log_softmax"), each(SOFTMAX)),
    **dict.fromkeys(("sum", "max", "min", "mean"), each_read(1)),
    **dict.fromkeys(("prod", "collapse_sum_to", "collapse_sum_like"), each_read(1)),
    **dict.fromkeys(("variance", "std"), each_read(4)),
    **dict.fromkeys(("cumsum", "cumprod", "argmax", "argmin", "nonzero"), each_read(2)),
    "multinomial_from_uniform": each_read(4),
    **dict.fromkeys(("sort", "argsort", "topk", "median", "bucketize"), each_read(100)),
    **dict.fromkeys(("size", "shape_to_tensor", "tensor_to_shape"), none),
    **dict.fromkeys(("prim_less_equal", "prim_to_tensor", "reinterpret"), none),
    "unique": each_read(100),
    "matmul": _matmul,
    "einsum": _einsum,
    "outer": each(1),
    **{f"nn.conv{r}d": _conv for r in (1, 2, 3)},
    **{f"nn.conv{r}d_transpose": _conv_transpose for r in (1, 2, 3)},
    **{f"nn.{kind}_pool{r}d": _pool for r in (1, 2, 3) for kind in ("max", "avg")},
    **{f"nn.adaptive_avg_pool{r}d": each_read(1) for r in (1, 2, 3)},
    **dict.fromkeys(("nn.pad", "nn.pixel_shuffle", "nn.dropout"), none),
    **dict.fromkeys(("image.resize2d", "image.resize3d"), each(60)),
    "image.affine_grid": each(30),
    "image.grid_sample": each(30),
    "image.roi_align": each(60),
    "image.non_max_suppression": each_read(100),
    "vision.roi_align": each(60),
    "vision.roi_pool": each(30),
    "vision.multibox_transform_loc": each(60),
    "vision.get_valid_counts": each_read(2),
    "vision.non_max_suppression": each_read(100),
    "vision.all_class_non_max_suppression": each_read(100),
    **dict.fromkeys(("grad.max_pool2d_backward", "grad.avg_pool2d_backward"), each_read(10)),
    **dict.fromkeys(("grad.nll_loss_backward", "grad.take_backward"), each_read(2)),
    "quantize": each(14),
    "dequantize": each(3),
    **dict.fromkeys(("nn.layer_norm", "nn.group_norm", "nn.instance_norm"), each(6)),
    **dict.fromkeys(("nn.rms_norm", "nn.batch_norm"), each(3)),
    **dict.fromkeys(("nn.attention", "nn.attention_bias"), _attention),
    "nn.rotary_embedding": each(3),
    **dict.fromkeys(("dist.shard", "dist.replicate", "dist.all_gather"), none),
    "dist.all_reduce": each_read(1),
    **dict.fromkeys(("nn.rnn", "nn.lstm", "nn.gru"), _recurrent),
    "nn.cross_entropy_with_logits": each_read(2),
    "nn.nll_loss": each_read(1),
}
"""The flops of every built-in operator but the intrinsics, by name.

The numbers are nanoseconds measured in a chain, times the flops that an elementwise kernel does in
one.  A fused multiply-add costs slightly more than an addition, so that an existing product is not
computed again.
"""


def work_of(name: str) -> Work:
    """The flops of the operator `name`, by the table or by the definition of its user."""
    return WORK.get(name) or _own(named(name))


def _own(op: Op) -> Work:
    stated = op.own.work if op.own else 0.0
    if not callable(stated):
        return each(stated)

    def flops(applied: Applied) -> float:
        extents = (*applied.operands, applied.result)
        count = math.nan if None in extents else stated(*extents, **applied.attrs)
        if count < 0 or count == math.inf:
            raise ExtractionError(f"{op}: its work is {count} flops, needs a number, 0 or more")
        return count

    return flops


MOVEMENT = frozenset(name for name, work in WORK.items() if work is none and OPS[name].fusible)
"""Operators without arithmetic: inside a kernel they are index maps."""

READS_RESULT = frozenset(
    {
        *("take", "gather_elements", "gather_nd", "index_tensor"),
        *("strided_slice", "dynamic_strided_slice"),
    }
)
"""Operators that read no more elements of their first operand than their result has."""
