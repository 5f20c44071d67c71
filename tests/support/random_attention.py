"""Attention and rotary embeddings in random programs, in the spellings of exporters."""

import numpy as np

from relax_egraph.ir.block_builder import call
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Constant, Expr, PrimValue, Tuple, TupleGetItem, shape
from relax_egraph.ir.struct_info import Shape
from tests.support.random_choices import but, either_way, floats, number, static, weight
from tests.support.random_writer import Rejected, Writer, dtype_of, shape_of

HIDDEN = (-1e9, -np.inf, -1e4)
"""The score of a hidden key."""


def attention_written_out(w: Writer) -> Expr:
    """The softmax of scaled and masked scores times values, for heads cut from one tensor."""
    x = floats(w, 3)
    batch, length, width = shape_of(x)
    width = static(x, 2)
    if not width:
        raise Rejected
    heads = w.choice([h for h in (1, 2, 4) if width % h == 0])
    size = width // heads
    groups = w.choice([g for g in (1, 2) if heads % g == 0]) if w.chance(0.3) else heads
    q = _heads(w, x, (batch, length, heads, size))
    k, v = (_repeated(w, _heads(w, x, (batch, length, groups, size)), heads) for _ in range(2))
    scale = but(w, size**-0.5, size**0.5, 0.5)
    before = w.chance(0.3)
    if before:
        q = w.op("multiply", q, number(x, scale))
    scores = w.op("matmul", q, w.op("permute_dims", k, axes=but(w, (0, 1, 3, 2), (1, 0, 3, 2))))
    if not before and w.chance(0.8):
        by = w.choice([("multiply", scale), ("divide", 1 / scale)])
        scores = w.op(by[0], scores, number(x, by[1]))
    scores = _masked(w, scores)
    attended = w.op("matmul", w.op("nn.softmax", scores, axis=but(w, -1, 2)), v)
    joined = w.op("permute_dims", attended, axes=(0, 2, 1, 3))
    return w.op("reshape", joined, shape((batch, length, width)))


def attention_of_one_head(w: Writer) -> Expr:
    """The softmax of the products of a tensor with itself, times the tensor."""
    x = floats(w, 3)
    scores = w.op("matmul", x, w.op("permute_dims", x, axes=(0, 2, 1)))
    if w.chance(0.6):
        scores = w.op("multiply", scores, number(x, w.choice((0.5, max(static(x, 2), 1) ** -0.5))))
    if w.chance(0.3):
        scores = w.op("add", scores, weight(w, x, shape_of(scores)))
    return w.op("matmul", w.op("nn.softmax", scores, axis=-1), x)


def _heads(w: Writer, x: Expr, extents: Shape) -> Expr:
    """A projection of `x` as (batch, head, position, element), perhaps rotated by position."""
    *_, heads, size = extents
    width = static(x, -1)
    wanted = int(heads) * int(size)
    y = w.op("matmul", x, weight(w, x, (width, wanted))) if wanted < width or w.chance(0.7) else x
    if w.chance(0.3):
        y = w.op("add", y, weight(w, y, (wanted,)))
    projected = w.op("permute_dims", w.op("reshape", y, shape(extents)), axes=(0, 2, 1, 3))
    return rotated(w, projected) if w.chance(0.2) else projected


def _repeated(w: Writer, x: Expr, heads: int) -> Expr:
    """The heads of (batch, head, position, element), repeated up to `heads` in all."""
    batch, groups, length, size = shape_of(x)
    times = heads // int(groups)
    if times == 1:
        return x
    if w.chance(0.5):
        return w.op("repeat", x, repeats=times, axis=1)
    parted = w.op("reshape", x, shape((batch, groups, 1, length, size)))
    wide = w.op("broadcast_to", parted, shape((batch, groups, times, length, size)))
    return w.op("reshape", wide, shape((batch, heads, length, size)))


def _masked(w: Writer, scores: Expr) -> Expr:
    kind = w.choice(("none", "bias", "bias", "causal", "causal", "where", "fill"))
    if kind == "none":
        return scores
    axes = w.choice(((1, 1), (1,), ()))
    if kind == "causal":
        return _causal(w, scores, axes)
    extents = (*axes, *shape_of(scores)[-2:])
    if kind == "bias":
        return either_way(w, "add", scores, weight(w, scores, extents))
    keep = Constant(weight(w, scores, extents).data > -0.5)
    return _hidden(w, scores, keep, kind == "fill")


def _hidden(w: Writer, scores: Expr, keep: Expr, fill: bool) -> Expr:
    """Scores where `keep` holds, else a number, by one operator or another."""
    low = w.choice(HIDDEN)
    if w.chance(0.3):
        low_or_0 = w.op("where", keep, number(scores, 0.0), number(scores, low))
        return w.op("add", scores, low_or_0)
    if fill:
        hidden = w.op("broadcast_to", w.op("logical_not", keep), shape(shape_of(scores)))
        return w.op("masked_fill", scores, hidden, value=low)
    return w.op("where", keep, scores, number(scores, low))


def _causal(w: Writer, scores: Expr, axes: Shape) -> Expr:
    """Scores of the keys up to the query's position, in one of the spellings."""
    rows, columns = shape_of(scores)[-2:]
    square = shape((*axes, rows, columns))
    kind = w.choice(("bool", "float", "above", "places", "places"))
    if kind == "places":
        i, j = (_places(w, extent, k == 0) for k, extent in enumerate((rows, columns)))
        keep = w.op(w.choice(("less_equal", "less_equal", "less")), j, i)
    elif kind == "above":
        ones = w.op("full", square, number(scores, 1), dtype=dtype_of(scores))
        high = w.op("triu", ones, PrimValue(but(w, 1, 0)))
        keep = w.op("equal", high, number(scores, 0.0))
    else:
        dtype = "bool" if kind == "bool" else dtype_of(scores)
        ones = w.op("full", square, number(scores, 1), dtype=dtype)
        low = w.op("tril", ones, PrimValue(but(w, 0, 1, -1)))
        keep = low if kind == "bool" else w.op("greater", low, number(scores, 0.5))
    return _hidden(w, scores, keep, w.chance(0.3))


def _places(w: Writer, extent: Dim, column: bool) -> Expr:
    """0, 1, 2, … as a column or a row."""
    places = w.emit(call("arange", PrimValue(0), PrimValue(extent), PrimValue(1), dtype="int64"))
    return w.op("expand_dims", places, axis=1 if column else 0)


# --- rotary -----------------------------------------------------------------------------


def rotary(w: Writer) -> Expr:
    """Elements of a tensor, rotated by angles."""
    return rotated(w, w.tensor("f", least=2))


def rotated(w: Writer, x: Expr) -> Expr:
    """Pairs along the last axis of `x`, rotated by angles, in one of the spellings."""
    size = static(x, -1)
    if size < 2 or size % 2:
        raise Rejected
    length = shape_of(x)[-2]
    angles = _angles(w, x, (length if isinstance(length, int) else 1, size // 2))
    cos, sin = (w.op(name, angles) for name in ("cos", "sin"))
    first, second = _halves(w, x, size)
    if w.chance(0.5):
        u = w.op("subtract", w.op("multiply", first, cos), w.op("multiply", second, sin))
        v = w.op("add", w.op("multiply", second, cos), w.op("multiply", first, sin))
        return w.op("concat", Tuple((u, v)), axis=-1)
    cos, sin = (w.op("concat", Tuple((t, t)), axis=-1) for t in (cos, sin))
    quarter = w.op(
        "concat", Tuple(but(w, (w.op("negative", second), first), (second, first))), axis=-1
    )
    return w.op("add", w.op("multiply", x, cos), w.op("multiply", quarter, sin))


def _angles(w: Writer, x: Expr, extents: tuple[int, int]) -> Constant:
    length, count = extents
    speeds = 10.0 ** -np.linspace(0, 4, count)
    return Constant(np.asarray(np.outer(np.arange(length), speeds), dtype_of(x)))


def _halves(w: Writer, x: Expr, size: int) -> tuple[Expr, Expr]:
    axis = len(shape_of(x)) - 1
    if w.chance(0.4):
        both = w.emit(call("split", x, indices_or_sections=2, axis=axis))
        return w.emit(TupleGetItem(both, 0)), w.emit(TupleGetItem(both, 1))
    half = size // 2
    first, second = (
        w.op("strided_slice", x, shape((begin,)), shape((begin + half,)), axes=(axis,))
        for begin in (0, half)
    )
    return first, second
