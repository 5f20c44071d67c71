"""Operators that run as kernels of their own, and their share of the machine's peak.

Measured on one core of an AMD Zen 5 in float32 (240 GFLOP/s, 100 GB/s in the caches): GFLOP/s if
arithmetic is the bottleneck, else GB/s of all data read and written.

    concat, stack, split, slices, take of rows                80 - 100 GB/s
    permute_dims that keeps / moves the last axis             80 - 103, 24 - 25 GB/s
    pad, tile, repeat, flip, pixel_shuffle, scatters          17 - 27 GB/s
    rotary_embedding of halves; interleaved                   40 - 45; 13 GB/s
    gather_elements, cumsum, argmax                           36, 12, 30 GB/s
    topk of rows of 8, 128, 50 000; sort                      5, 1, 5 - 25; 0.3 GB/s
    layer_norm, instance_norm, batch_norm; rms_norm           61 - 65; 82 GB/s
    log_softmax of (512, 768); group_norm                     102 µs; 5 GB/s
    conv2d 1×1; of stride 2                                   213 - 240; 195 - 233 GFLOP/s
    conv2d 3×3 of stride 1, as the definition counts          290 - 500 GFLOP/s, 355 at 7²
    conv2d otherwise; of 3 channels                           195 - 245; 84 - 190 GFLOP/s
    conv2d in groups of 4, 8, 16, 32, 64 features             41, 89, 168, 204, 225 GFLOP/s
    the same in planes, stride 1, of 2, 4, 8 - 15 features    111, 180, 195 - 210 GFLOP/s
    conv2d of each channel by itself; transposed              40 - 90, 130 - 200 GFLOP/s
    conv2d transposed, in groups                              17 - 65 GFLOP/s
    pool 3×3 of NCHW; of NHWC; in another order; over all     33 - 53; 52 - 97; 1.4; 130 GB/s
    einsum of two matrices, batched or not                    93 - 233 GFLOP/s
    resize2d                                                  16 GFLOP/s
    attention of 100 / 128 / 512 / 1024 keys of 64            155, 190, 195, 200 GFLOP/s
    the same of 512 and more, on a Zen 4 (118); with AVX2     102; 95 GFLOP/s
    attention of one query, 128 - 1024 keys in the caches     100 - 160 GB/s
    attention that writes all scores, at 512 keys             36 GFLOP/s
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Attr
from relax_egraph.ir.kernel import Schedule
from relax_egraph.ir.op import Op
from relax_egraph.ir.own import Own
from relax_egraph.ir.struct_info import Shape, TensorStructInfo

COPY = Schedule("movement", flops=0.5, bandwidth=0.85)
SCATTERED = Schedule("elementwise", flops=0.1, bandwidth=0.2)
MAP = Schedule("elementwise", flops=0.5, bandwidth=0.8)
ROWS = Schedule("rows", flops=0.5, bandwidth=0.7)
SCANNED = Schedule("generic", flops=0.05, bandwidth=0.15)
SORTED = Schedule("generic", flops=0.01, bandwidth=0.003)
ATTENTION = Schedule("attention", flops=0.84, bandwidth=0.8)
ALL_SCORES = Schedule("generic", flops=0.15, bandwidth=0.2)
CONTRACTION = Schedule("matmul", flops=0.5, bandwidth=0.5)
RECURRENT = Schedule("recurrence", flops=0.35, bandwidth=0.4)
RESIZED = Schedule("generic", flops=0.065, bandwidth=0.2)
LOOPS = Schedule("generic", flops=0.2, bandwidth=0.8)

OPERATORS: Mapping[str, Schedule] = {
    **dict.fromkeys(("concat", "stack", "split", "take", "nn.dropout"), COPY),
    **dict.fromkeys(("full", "full_like", "ones", "ones_like", "zeros", "zeros_like"), COPY),
    "prim_to_tensor": COPY,
    **dict.fromkeys(("size", "shape_to_tensor", "nn.batch_flatten", "meshgrid"), COPY),
    **dict.fromkeys(("eye", "eye_like", "tril", "triu", "one_hot", "arange", "outer"), MAP),
    **dict.fromkeys(("nn.prelu", "quantize", "dequantize", "nn.batch_norm"), MAP),
    **dict.fromkeys(("hamming_window", "image.affine_grid"), MAP),
    **dict.fromkeys(("tile", "repeat", "flip", "nn.pad", "nn.pixel_shuffle"), SCATTERED),
    **dict.fromkeys(("gather_elements", "gather_nd", "index_tensor"), SCATTERED),
    "check_indices": ROWS,
    **dict.fromkeys(("scatter_elements", "scatter_nd", "index_put", "slice_scatter"), SCATTERED),
    "reverse_sequence": SCATTERED,
    **dict.fromkeys(("nn.layer_norm", "nn.instance_norm", "nn.rms_norm"), ROWS),
    **dict.fromkeys(("dist.shard", "dist.replicate", "dist.all_gather"), COPY),
    "dist.all_reduce": LOOPS,
    "nn.group_norm": Schedule("generic", flops=0.1, bandwidth=0.055),
    "nn.log_softmax": Schedule("rows", flops=0.48, bandwidth=0.8),
    **dict.fromkeys(("prod", "variance", "std", "nn.cross_entropy_with_logits"), ROWS),
    **dict.fromkeys(("collapse_sum_like", "collapse_sum_to", "nn.nll_loss"), ROWS),
    **dict.fromkeys(("argmax", "argmin"), Schedule("rows", flops=0.065, bandwidth=0.3)),
    **dict.fromkeys(("cumsum", "cumprod", "multinomial_from_uniform", "bucketize"), SCANNED),
    **dict.fromkeys(("sort", "argsort"), SORTED),
    "topk": Schedule("generic", flops=0.01, bandwidth=0.05),
    **dict.fromkeys(("nn.attention", "nn.attention_bias"), ATTENTION),
    "nn.rotary_embedding": Schedule("movement", flops=0.5, bandwidth=0.4),
    "einsum": CONTRACTION,
    **dict.fromkeys(("nn.rnn", "nn.lstm", "nn.gru"), RECURRENT),
    **dict.fromkeys(("image.resize2d", "image.resize3d"), RESIZED),
    **dict.fromkeys(("image.grid_sample", "image.roi_align"), RESIZED),
    **{f"nn.adaptive_avg_pool{r}d": ROWS for r in (1, 2, 3)},
}
"""Operators whose share does not depend on extents and attributes."""

WINDOWED = frozenset(
    {
        *(f"nn.conv{r}d{kind}" for r in (1, 2, 3) for kind in ("", "_transpose")),
        *(f"nn.{kind}_pool{r}d" for r in (1, 2, 3) for kind in ("max", "avg")),
    }
)
"""Operators that move a window over their first operand."""

_FEATURES = ((32, 0.85), (16, 0.7), (8, 0.37), (0, 0.17))
"""The share of peak by the minimal number of features of a group, which fill vector lanes."""

_OF_POSITIONS = ((16, None), (8, 0.8), (4, 0.7), (2, 0.45), (0, 0.2))
"""The same in planes, whose vectors are of positions; none from the first number on."""

_FEWEST = 16
"""The minimal number of channels or features for the full share of a convolution."""

TRANSPOSED_DATA, TRANSPOSED_RESULT = 36, 24
"""The flops in the time of moving an element of data, or of the result, between layouts.

Blocks are transposed in registers, so this depends on the vectors of a machine as arithmetic does.
Measured on 30 convolutions of ResNet-50 and MobileNet: 0.12 - 0.3 ns of data, 0.05 - 0.3 ns of the
result, at 240 GFLOP/s.
"""


PACKED = Schedule("packed", flops=1.0, bandwidth=1.0)
"""A packed function of a user: its stated work is at the peak of the machine."""


def schedule_of_own(
    op: Op, own: Own, operands: Sequence[TensorStructInfo], results: Sequence[TensorStructInfo]
) -> Schedule | None:
    """The schedule of `op`, which a user defines; ``None`` if the machine calls its reference."""
    if not results or any(i.dims is None or i.dtype is None for i in (*operands, *results)):
        return None
    if own.packed:
        return PACKED
    if own.loops is None:
        return None
    return MAP if op.elementwise else LOOPS


def schedule_of_operator(
    name: str,
    attrs: Mapping[str, Attr],
    operands: Sequence[TensorStructInfo],
    results: Sequence[TensorStructInfo],
) -> Schedule | None:
    """The schedule of `name`, not a fusible operator; ``None`` if it is called at run time."""
    infos = (*operands, *results)
    if not results or any(i.dims is None or i.dtype is None for i in infos):
        return None
    if OPERATORS.get(name) is ATTENTION and results[0].dtype != "float32":
        return ALL_SCORES
    if name not in WINDOWED:
        return OPERATORS.get(name)
    shapes = [i.dims or () for i in infos]
    if "pool" in name:
        return _pool(attrs, shapes[0])
    if any(i.dtype != "float32" for i in infos):
        return Schedule("generic", flops=0.03, bandwidth=0.2)
    return _conv(name, attrs, shapes)


def _conv(name: str, attrs: Mapping[str, Attr], shapes: Sequence[Shape]) -> Schedule:
    """A convolution in any layout; data and result with channels first are transposed.

    Planes with few features are not.
    """
    if (share := _share_of_positions(name, attrs, shapes)) is not None:
        return Schedule("conv", flops=share, bandwidth=0.5)
    schedule = _channels_last_conv(name, attrs, shapes)
    work, moves = _work_of_result(name, attrs, shapes), _moves_of_result(name, attrs, shapes)
    if work is None or not moves:
        return schedule
    return replace(schedule, flops=schedule.flops * work / (work + schedule.flops * moves))


def _share_of_positions(
    name: str, attrs: Mapping[str, Attr], shapes: Sequence[Shape]
) -> float | None:
    """The share of peak of a convolution of planes with few features, else ``None``."""
    layouts = {attrs["data_layout"], attrs.get("out_layout") or attrs["data_layout"]}
    if name != "nn.conv2d" or layouts != {"NCHW"} or not _all(attrs["strides"], 1):
        return None
    weight = dict(zip(str(attrs["kernel_layout"]), shapes[1], strict=True))
    groups = attrs["groups"]
    assert isinstance(groups, int)
    channels, features = weight.pop("I"), dims.floordiv(weight.pop("O"), groups)
    is_single = features == channels == 1 or all(extent == 1 for extent in weight.values())
    if is_single or not all(isinstance(d, int) for d in (*shapes[0][2:], *shapes[1])):
        return None
    return next(share for least, share in _OF_POSITIONS if _at_least(features, least))


def _work_of_result(name: str, attrs: Mapping[str, Attr], shapes: Sequence[Shape]) -> float | None:
    """The flops for an element of the result; ``None`` if the extents of the weight are symbols."""
    weight = [d for d in shapes[1] if isinstance(d, int)]
    features = dict(zip(str(attrs["kernel_layout"]), shapes[1], strict=True))["O"]
    if len(weight) < len(shapes[1]) or not isinstance(features, int) or not prod(weight):
        return None
    shared = _stride(attrs) if name.endswith("_transpose") else 1
    return 2 * prod(weight) / features / shared


def _moves_of_result(name: str, attrs: Mapping[str, Attr], shapes: Sequence[Shape]) -> float:
    """The flops in the time of moving data and result between layouts, by element of the result."""
    data, result = str(attrs["data_layout"]), str(attrs["out_layout"] or attrs["data_layout"])
    channels, features = shapes[0][data.index("C")], shapes[2][result.index("C")]
    moves = 0.0 if result.endswith("C") else TRANSPOSED_RESULT
    if not data.endswith("C") and isinstance(channels, int) and isinstance(features, int):
        stride = _stride(attrs)
        read = 1 / stride if name.endswith("_transpose") else stride
        moves += TRANSPOSED_DATA * read * channels / max(features, 1)
    return moves


def _stride(attrs: Mapping[str, Attr]) -> int:
    """The positions of data for one of the result, or the reverse if it is transposed."""
    strides = attrs["strides"]
    assert isinstance(strides, tuple)
    return prod(int(s) for s in strides)


def _channels_last_conv(name: str, attrs: Mapping[str, Attr], shapes: Sequence[Shape]) -> Schedule:
    """A 1×1 convolution is a matrix product; one of 3×3 takes fewer multiplications."""
    if name.endswith("_transpose"):
        if attrs["groups"] == 1:
            return Schedule("conv", flops=0.75, bandwidth=0.4)
        return Schedule("generic", flops=0.08, bandwidth=0.2)
    weight = dict(zip(str(attrs["kernel_layout"]), shapes[1], strict=True))
    features, channels = weight.pop("O"), weight.pop("I")
    groups = attrs["groups"]
    assert isinstance(groups, int)
    if groups != 1:
        each = dims.floordiv(features, groups)
        if channels == each == 1:
            return Schedule("conv", flops=0.3, bandwidth=0.5)
        share = next(share for least, share in _FEATURES if _at_least(each, least))
        return Schedule("conv", flops=share, bandwidth=0.5)
    if _all(attrs["strides"], 1) and all(extent == 1 for extent in weight.values()):
        return Schedule("matmul", flops=0.85, bandwidth=0.8 if _all(attrs["padding"], 0) else 0.4)
    if not _at_least(channels, _FEWEST) or not _at_least(features, _FEWEST):
        return Schedule("conv", flops=0.45, bandwidth=0.5)
    is_dense = _all(attrs["strides"], 1) and _all(attrs["dilation"], 1)
    if is_dense and tuple(weight.values()) == (3, 3):
        return Schedule("conv", flops=1.0, bandwidth=0.5)
    return Schedule("conv", flops=0.9, bandwidth=0.5)


def _pool(attrs: Mapping[str, Attr], data: Shape) -> Schedule:
    size, layout = attrs["pool_size"], attrs["layout"]
    assert isinstance(size, tuple)
    if _all(attrs["padding"], 0) and data[-len(size) :] == size:
        return Schedule("rows", flops=0.05, bandwidth=0.75)
    if attrs["out_layout"] not in (None, layout):
        return Schedule("generic", flops=0.003, bandwidth=0.2)
    if str(layout).endswith("C"):
        return Schedule("pool", flops=0.2, bandwidth=0.6)
    return Schedule("pool", flops=0.15, bandwidth=0.45)


def _all(values: Attr, expected: int) -> bool:
    return isinstance(values, tuple) and all(v == expected for v in values)


def _at_least(extent: Dim, least: int) -> bool:
    return least == 0 or dims.prove_ge(extent, least)
