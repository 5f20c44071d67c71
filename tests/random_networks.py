"""Parts of networks in random programs, as exporters write them: convolutions, attention."""

from collections.abc import Callable

import numpy as np

from relax_egraph.ir.expr import Constant, Expr, PrimValue, Tuple, shape
from relax_egraph.ir.struct_info import Shape
from tests.ops.case import Draw
from tests.ops.conv import layout
from tests.random_arithmetic import (
    activation_written_out,
    affine_chain,
    common_factor,
    repeated,
    slice_of_slice,
    split_and_joined,
    spread,
)
from tests.random_choices import but, either_way, floats, number, static, weight
from tests.random_norms import (
    batch_norm,
    layer_norm_written_out,
    norm_of_groups,
    rms_norm_written_out,
    scaled_and_shifted,
)
from tests.random_writer import Rejected, Writer, shape_of

# --- images -----------------------------------------------------------------------------


def convolution(w: Writer) -> Expr:
    """A scale or norm, a convolution, a norm or bias, an activation; some are left out."""
    x = floats(w, 4)
    data_layout = layout(Draw(w.random), "NCHW") if w.chance(0.5) else "NCHW"
    channel = data_layout.index("C")
    inner = static(x, channel)
    if w.chance(0.3):
        ones = tuple(inner if k == channel else 1 for k in range(1, 4))
        x = scaled_and_shifted(w, x, ones if channel else ())
    groups = w.choice([g for g in (1, 1, 2, 3) if inner % g == 0] or [1])
    size, outer = w.choice((1, 1, 2, 3)), groups * w.choice((1, 2, 4))
    attrs = {
        "strides": (w.choice((1, 1, 2)),) * 2,
        "padding": (w.choice((0, 1)),) * 2,
        "groups": groups,
        "data_layout": data_layout,
    }
    siblings = 2 if w.chance(0.25) else 1
    extents = (outer, inner // groups, size, size)
    made = [w.op("nn.conv2d", x, weight(w, x, extents), **attrs) for _ in range(siblings)]
    y = made[0] if siblings == 1 else w.op("concat", Tuple(tuple(made)), axis=channel)
    if w.chance(0.6):
        y = batch_norm(w, y, channel)
    elif w.chance(0.6):
        y = w.op("add", y, weight(w, y, tuple(outer if k == channel else 1 for k in range(4))))
    return w.op("nn.relu", y) if w.chance(0.5) else y


def between_layouts(w: Writer) -> Expr:
    """Something for images in the other layout, between permutations there and back."""
    x = floats(w, 4)
    there, back = w.choice([((0, 2, 3, 1), (0, 3, 1, 2)), ((0, 3, 1, 2), (0, 2, 3, 1))])
    y = w.op("permute_dims", x, axes=there)
    inner = w.choice(("max_pool2d", "avg_pool2d", "relu", "norm", "mean", "bias"))
    if inner in ("max_pool2d", "avg_pool2d"):
        letters = but(w, "NHWC" if there[-1] == 1 else "NCHW", "NCHW", "NHWC")
        attrs = {"pool_size": (2, 2), "strides": (w.choice((1, 2)),) * 2, "padding": (1, 1)}
        y = w.op(f"nn.{inner}", y, layout=letters, **attrs)
    elif inner == "relu":
        y = w.op("nn.relu", y)
    elif inner == "norm":
        y = batch_norm(w, y, 3 if there[-1] == 1 else 1)
    elif inner == "mean":
        y = w.op("mean", y, axis=tuple(w.random.sample(range(4), 2)), keepdims=True)
    else:
        y = w.op("add", y, weight(w, y, shape_of(y)[-1:]))
    return w.op("permute_dims", y, axes=but(w, back, there, (3, 2, 1, 0)))


# --- products ---------------------------------------------------------------------------


def parallel_matmuls(w: Writer) -> object:
    """Products of one value by several weights, each with what follows."""
    x = w.tensor("f", least=1)
    inner, columns = static(x, -1), [w.choice((1, 3, 4, 8)) for _ in range(w.choice((2, 2, 3)))]
    made: list[Expr] = []
    for extent in columns:
        y = w.op("matmul", x, weight(w, x, (inner, extent)))
        y = either_way(w, "add", y, weight(w, y, (extent,))) if w.chance(0.5) else y
        made.append(w.op("nn.relu", y) if w.chance(0.3) else y)
    if w.chance(0.4):
        return w.op("concat", Tuple(tuple(made)), axis=-1)
    if len(set(columns)) == 1:
        gate = w.op(w.choice(("sigmoid", "nn.silu", "nn.gelu")), made[1])
        return w.op("multiply", made[0], gate)
    return made


def attention_written_out(w: Writer) -> Expr:
    """Softmax of scaled and masked scores times values, of heads that are cut from one tensor."""
    x = floats(w, 3)
    batch, length, width = shape_of(x)
    width = static(x, 2)
    if not width:
        raise Rejected
    heads = w.choice([h for h in (1, 2, 4) if width % h == 0])
    size = width // heads
    q, k, v = (_heads(w, x, (batch, length, heads, size)) for _ in range(3))
    scale = but(w, size**-0.5, size**0.5, 0.5)
    before = w.chance(0.3)
    if before:
        q = w.op("multiply", q, number(x, scale))
    scores = w.op("matmul", q, w.op("permute_dims", k, axes=but(w, (0, 1, 3, 2), (1, 0, 3, 2))))
    if not before and w.chance(0.8):
        by = w.choice([("multiply", scale), ("divide", 1 / scale)])
        scores = w.op(by[0], scores, number(x, by[1]))
    scores = _masked(w, scores)
    made = w.op("matmul", w.op("nn.softmax", scores, axis=but(w, -1, 2)), v)
    joined = w.op("permute_dims", made, axes=(0, 2, 1, 3))
    return w.op("reshape", joined, shape((batch, length, width)))


def _heads(w: Writer, x: Expr, extents: Shape) -> Expr:
    """A projection of `x` as (batch, head, position, element)."""
    width = static(x, -1)
    y = w.op("matmul", x, weight(w, x, (width, width))) if w.chance(0.7) else x
    if w.chance(0.3):
        y = w.op("add", y, weight(w, y, (width,)))
    return w.op("permute_dims", w.op("reshape", y, shape(extents)), axes=(0, 2, 1, 3))


def _masked(w: Writer, scores: Expr) -> Expr:
    kind = w.choice(("none", "bias", "bias", "causal", "where"))
    if kind == "none":
        return scores
    extents = (*((1, 1) if w.chance(0.5) else ()), *shape_of(scores)[-2:])
    if kind == "bias":
        return either_way(w, "add", scores, weight(w, scores, extents))
    low = number(scores, w.choice((-1e9, -np.inf, -1e4)))
    if kind == "where":
        keep = Constant(weight(w, scores, extents).data > -0.5)
        return w.op("where", keep, scores, low)
    ones = w.op("full", shape(extents), number(scores, 1), dtype="bool")
    return w.op("where", w.op("tril", ones, PrimValue(but(w, 0, 1, -1))), scores, low)


PARTS: tuple[Callable[[Writer], object], ...] = (
    *(affine_chain, affine_chain, common_factor, activation_written_out, spread),
    *(layer_norm_written_out, rms_norm_written_out, norm_of_groups, convolution, convolution),
    *(between_layouts, parallel_matmuls, parallel_matmuls, attention_written_out),
    *(attention_written_out, split_and_joined, slice_of_slice, repeated),
)


def part_of_network(w: Writer) -> object:
    """Write a part of a network; it leaves what it read as it was."""
    return w.choice(PARTS)(w)


def plan_part(w: Writer) -> list[tuple[Shape, str]]:
    """The parameter that a network takes: a sequence or images."""
    first = w.choice((1, 2, *w.extents))
    length = w.choice((3, 5, *w.extents))
    width = w.choice((2, 4, 6, 8))
    dtype = w.choice(("float32", "float32", "float64"))
    if w.chance(0.5):
        return [((first, length, width), dtype)]
    sides = (w.choice((4, 5, 6)),) * 2
    return [((first, width, *sides) if w.chance(0.7) else (first, *sides, width), dtype)]
