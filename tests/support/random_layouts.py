"""Images and signals between permutations, in random programs."""

from relax_egraph.ir.expr import Expr, shape
from relax_egraph.ir.struct_info import Shape
from tests.support.random_choices import but, floats, static, weight
from tests.support.random_norms import batch_norm
from tests.support.random_writer import Rejected, Writer, shape_of

LETTERS = {3: "NCW", 4: "NCHW", 5: "NCDHW"}
"""The axes of images by their number, channels first."""


def between_layouts(w: Writer) -> Expr:
    """An operator on images in another layout, between permutations to it and back."""
    x = floats(w, w.choice((3, 4, 4, 4, 5)))
    rank = len(shape_of(x))
    last = (0, *range(2, rank), 1)
    first = (0, rank - 1, *range(1, rank - 1))
    there, back = w.choice([(last, first), (first, last)])
    y = w.op("permute_dims", x, axes=there)
    letters = "".join(LETTERS[rank][a] for a in last) if there == last else LETTERS[rank]
    y = _of_images(w, y, but(w, letters, LETTERS[rank]))
    same = len(shape_of(y)) == rank
    return w.op("permute_dims", y, axes=but(w, back, there)) if same else y


def _of_images(w: Writer, y: Expr, letters: str) -> Expr:
    rank, channel = len(shape_of(y)), letters.index("C")
    spatial = rank - 2
    kind = w.choice(("pool", "pool", "adaptive", "conv", "conv", "resize", "pad", "map", "norm"))
    if kind == "pool":
        attrs = {"pool_size": (2,) * spatial, "strides": (w.choice((1, 2)),) * spatial}
        name = f"nn.{w.choice(('max', 'avg'))}_pool{spatial}d"
        return w.op(name, y, layout=letters, padding=(1,) * spatial, **attrs)
    if kind == "adaptive":
        name = f"nn.adaptive_avg_pool{spatial}d"
        return w.op(name, y, output_size=(w.choice((1, 2)),) * spatial, layout=letters)
    if kind == "conv":
        return convolved(w, y, letters)
    if kind == "resize":
        if rank != 4:
            raise Rejected
        return w.op("image.resize2d", y, shape((3, 5)), layout=letters, method="nearest_neighbor")
    if kind == "pad":
        return w.op("nn.pad", y, pad_width=tuple(w.choice((0, 1)) for _ in range(2 * rank)))
    if kind == "norm":
        return _norm(w, y, channel)
    name = w.choice(("relu", "leakyrelu", "log_softmax", "clip", "reduction", "bias"))
    if name == "clip":
        return w.op("clip", y, min=-1.0, max=1.0)
    if name == "reduction":
        axes = tuple(w.random.sample(range(rank), w.choice((1, 2))))
        return w.op(w.choice(("mean", "sum", "max")), y, axis=axes, keepdims=w.chance(0.5))
    if name == "bias":
        return w.op("add", y, weight(w, y, shape_of(y)[-1:]))
    return w.op(f"nn.{name}", y)


def _norm(w: Writer, y: Expr, channel: int) -> Expr:
    if w.chance(0.5):
        return batch_norm(w, y, channel)
    channels = static(y, channel)
    gamma, beta = (weight(w, y, (channels,), near) for near in (1.0, 0.0))
    axes = [k for k in range(1, len(shape_of(y))) if k != channel]
    if w.chance(0.5):
        return w.op("nn.rms_norm", y, gamma, axes=(channel,))
    return w.op("nn.instance_norm", y, gamma, beta, channel_axis=channel, axes=tuple(axes))


def convolved(w: Writer, y: Expr, letters: str) -> Expr:
    """A convolution of any rank, perhaps transposed, with a scale, shift or bias beside it."""
    spatial, channel = len(letters) - 2, letters.index("C")
    inner = static(y, channel)
    transposed = w.chance(0.3)
    groups = w.choice([g for g in (1, 1, 2) if inner and inner % g == 0] or [1])
    outer, size = w.choice((1, 2, 4)), w.choice((1, 2, 3))
    spread: Shape = (size,) * spatial
    if w.chance(0.3):
        y = w.op(w.choice(("multiply", "add", "subtract")), y, _each(w, y, channel, inner))
    if transposed:
        name, extents = f"nn.conv{spatial}d_transpose", (inner, outer, *spread)
    else:
        name, extents = f"nn.conv{spatial}d", (groups * outer, inner // groups, *spread)
    whole = outer * groups
    attrs = {"strides": (w.choice((1, 1, 2)),) * spatial, "padding": (w.choice((0, 1)),) * spatial}
    result = w.op(name, y, weight(w, y, extents), groups=groups, data_layout=letters, **attrs)
    for _ in range(w.choice((0, 1, 2))):
        act = w.choice(("multiply", "divide", "add", "subtract"))
        result = w.op(act, result, _each(w, result, channel, whole))
    return result


def _each(w: Writer, x: Expr, channel: int, count: int) -> Expr:
    """A number for each channel, none of them near 0."""
    rank = len(shape_of(x))
    ones = (count, *(1,) * (rank - 1 - channel))
    return weight(w, x, ones, near=3.0)


def convolution_of_any_rank(w: Writer) -> Expr:
    """A convolution of signals, images or volumes, channels first."""
    x = floats(w, w.choice((3, 4, 5)))
    return convolved(w, x, LETTERS[len(shape_of(x))])
