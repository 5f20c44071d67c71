"""How much arithmetic each operator is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from relax_egraph.ir.op import OPS


@dataclass(frozen=True, slots=True)
class Work:
    """An operator's work: `flops` for each element of its result, or of its first operand.

    Or, for a matrix product, for each product of elements that it adds up.
    """

    flops: float
    each: Literal["result", "operand", "product"] = "result"


WORK: Mapping[str, Work] = {
    **dict.fromkeys(
        ("permute_dims", "reshape", "flatten", "broadcast_to", "expand_dims", "squeeze"), Work(0)
    ),
    "shape_of": Work(0),
    **dict.fromkeys(
        ("concat", "stack", "split", "meshgrid", "tile", "repeat", "flip", "reverse_sequence"),
        Work(0),
    ),
    "nn.batch_flatten": Work(0),
    **dict.fromkeys(
        ("full", "full_like", "ones", "ones_like", "zeros", "zeros_like", "eye", "eye_like"),
        Work(0),
    ),
    **dict.fromkeys(("arange", "one_hot", "tril", "triu"), Work(1)),
    "hamming_window": Work(30),
    **dict.fromkeys(("take", "gather_elements", "gather_nd", "index_tensor"), Work(0)),
    **dict.fromkeys(("strided_slice", "dynamic_strided_slice", "slice_scatter"), Work(0)),
    **dict.fromkeys(("scatter_elements", "scatter_nd", "index_put"), Work(1)),
    "masked_fill": Work(1),
    **dict.fromkeys(
        ("abs", "negative", "add", "ewise_add", "subtract", "multiply", "maximum", "minimum"),
        Work(1),
    ),
    **dict.fromkeys(("greater", "less", "equal", "where", "astype", "nn.relu"), Work(1)),
    **dict.fromkeys(("greater_equal", "less_equal", "not_equal"), Work(1)),
    **dict.fromkeys(("square", "ceil", "floor", "round", "trunc", "isnan"), Work(1)),
    **dict.fromkeys(("isfinite", "isinf", "sign", "clip", "nn.relu6"), Work(2)),
    **dict.fromkeys(("nn.leakyrelu", "nn.prelu"), Work(3)),
    **dict.fromkeys((f"bitwise_{kind}" for kind in ("and", "not", "or", "xor")), Work(1)),
    **dict.fromkeys((f"logical_{kind}" for kind in ("and", "not", "or", "xor")), Work(1)),
    **dict.fromkeys(("left_shift", "right_shift"), Work(3)),
    **dict.fromkeys(("floor_divide", "floor_mod", "mod"), Work(40)),
    "ewise_fma": Work(1),
    "divide": Work(8),
    "sqrt": Work(8),
    "rsqrt": Work(10),
    "exp": Work(20),
    "log": Work(24),
    "sigmoid": Work(28),
    "tanh": Work(30),
    "erf": Work(30),
    "power": Work(60),
    "nn.gelu": Work(34),
    "nn.gelu_tanh": Work(36),
    "nn.silu": Work(29),
    "nn.selu": Work(26),
    "nn.softplus": Work(70),
    "log_add_exp": Work(70),
    **dict.fromkeys(("sin", "cos", "tan"), Work(60)),
    **dict.fromkeys(("asin", "acos", "atan", "atan2"), Work(90)),
    **dict.fromkeys(("sinh", "cosh", "asinh", "acosh", "atanh"), Work(80)),
    "nn.softmax": Work(30),
    **dict.fromkeys(("sum", "max", "min", "mean"), Work(1, "operand")),
    **dict.fromkeys(("prod", "collapse_sum_to", "collapse_sum_like"), Work(1, "operand")),
    **dict.fromkeys(("variance", "std"), Work(4, "operand")),
    **dict.fromkeys(("cumsum", "cumprod", "argmax", "argmin", "nonzero"), Work(2, "operand")),
    "multinomial_from_uniform": Work(4, "operand"),
    **dict.fromkeys(("sort", "argsort", "topk", "median", "bucketize"), Work(100, "operand")),
    **dict.fromkeys(("size", "shape_to_tensor", "tensor_to_shape"), Work(0)),
    "unique": Work(100, "operand"),
    "matmul": Work(2, "product"),
    **{f"nn.conv{r}d{kind}": Work(500) for r in (1, 2, 3) for kind in ("", "_transpose")},
    **{f"nn.{kind}_pool{r}d": Work(20) for r in (1, 2, 3) for kind in ("max", "avg")},
    **{f"nn.adaptive_avg_pool{r}d": Work(20) for r in (1, 2, 3)},
    **dict.fromkeys(("nn.pad", "nn.pixel_shuffle"), Work(0)),
    **dict.fromkeys(("image.resize2d", "image.resize3d"), Work(60)),
    "image.affine_grid": Work(30),
    "outer": Work(1),
    "einsum": Work(64),
    "quantize": Work(14),
    "dequantize": Work(3),
    "nn.log_softmax": Work(30),
    "nn.layer_norm": Work(8),
    "nn.rms_norm": Work(5),
    "nn.group_norm": Work(8),
    "nn.instance_norm": Work(8),
    "nn.attention": Work(512),
    "nn.attention_bias": Work(512),
    "nn.cross_entropy_with_logits": Work(2, "operand"),
    "nn.nll_loss": Work(1, "operand"),
    "nn.batch_norm": Work(8),
    "nn.dropout": Work(0),
}
"""The work of every operator but the intrinsics, by name.  An fma is one instruction."""

MOVEMENT = frozenset(name for name, work in WORK.items() if work.flops == 0 and OPS[name].fusible)
"""Operators that compute nothing: inside a kernel they are index maps."""
