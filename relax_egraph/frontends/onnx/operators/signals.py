"""Fourier transforms: the last axis of a signal holds real and imaginary parts, or real ones."""

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building import fourier
from relax_egraph.frontends.building.builder import dtype_of, info_of
from relax_egraph.frontends.building.complex_parts import Parts, joined, parted
from relax_egraph.frontends.building.dim_tensors import number_of
from relax_egraph.frontends.building.positions import counted
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.operators.positions import extent_of
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, PrimValue, ShapeExpr, Tuple, const
from relax_egraph.ir.struct_info import tensor


@converts("DFT")
def transform(node: Node) -> Expr:
    """The transform along an axis; real signals need only half of the frequencies."""
    x, rank = node[0], node.rank(0)
    if node.version < 20:
        axis = node.axis()
    else:
        known = node.integers(2) if node.has(2) else (-2,)
        if known is None:
            return _along_late(node, x, node.emit("reshape", node[2], ShapeExpr((1,))))
        axis = node.normalized(known[0], rank)
    if axis == rank - 1:
        raise ModelError("its axis is that of real and imaginary parts")
    order = [k for k in range(rank - 1) if k != axis]
    transposed = node.emit("permute_dims", x, axes=(*order, axis, rank - 1))
    back = tuple([*order, axis, rank - 1].index(k) for k in range(rank))
    return node.emit("permute_dims", _along_last(node, transposed), axes=back)


def _along_late(node: Node, x: Expr, axis_tensor: Expr) -> Expr:
    """The transform along an axis that is known only at run time, which is moved to the end."""
    rank = node.rank(0)
    axis_tensor = node.cast(axis_tensor, "int64")
    axis = node.emit("floor_mod", axis_tensor, node.scalar(rank, "int64"))
    own = node.emit("arange", PrimValue(rank - 1), dtype="int64")
    moved = node.emit("greater_equal", own, axis)
    one, parts = node.scalar(1, "int64"), const([rank - 1], "int64")
    others = node.emit("add", own, node.emit("astype", moved, dtype="int64"))
    cut = ShapeExpr((0,)), ShapeExpr((rank - 2,))
    others = node.emit("strided_slice", others, *cut, axes=(0,))
    order = node.emit("concat", Tuple((others, axis, parts)), axis=0)
    out = tensor(None, dtype_of(x), rank)
    transposed = node.emit_late("permute_dims", x, axes=order, out=out)
    *leading, _ = _shape(transposed)
    whole = tensor((*leading, _shape(x)[-1]), dtype_of(x))
    transposed = node.scope.bb.emit_match_cast(transposed, whole)
    lower = node.emit("less", own, axis)
    back = node.emit("where", lower, own, node.emit("subtract", own, one))
    last = node.emit("equal", own, axis)
    back = node.emit("where", last, node.scalar(rank - 2, "int64"), back)
    back = node.emit("concat", Tuple((back, parts)), axis=0)
    return node.emit_late("permute_dims", _along_last(node, transposed), axes=back, out=out)


def _along_last(node: Node, x: Expr) -> Expr:
    """The transform along the last axis of the signal, by the attributes of `node`."""
    onesided, inverse = (bool(node.attrs.integer(name)) for name in ("onesided", "inverse"))
    extent = _shape(x)[-2]
    if node.has(1):
        length = extent_of(node, 1)
    else:
        length = dims.mul(dims.sub(extent, 1), 2) if inverse and onesided else extent
    return transformed(node, x, length, onesided=onesided, inverse=inverse)


def transformed(
    node: Node, x: Expr, length: Dim, *, onesided: bool = False, inverse: bool = False
) -> Expr:
    """The transform of `length` along the last axis of the signal.

    Longer signals are cut, shorter ones are padded with 0.
    """
    wide = "float64" if dtype_of(x) == "float64" else "float32"
    parts = _parts(node, node.cast(x, wide))
    if inverse and onesided:
        out = node.emit("expand_dims", fourier.real_of_half(node, parts, length), axis=-1)
    else:
        count = dims.add(dims.floordiv(length, 2), 1) if onesided else length
        made = fourier.transformed(node, parts, length, count=count, inverse=inverse)
        out = joined(node, made)
    if inverse:
        out = node.emit("divide", out, number_of(node, length, wide))
    return node.cast(out, dtype_of(x))


def _parts(node: Node, x: Expr) -> Parts:
    """Real and imaginary parts; real numbers have no imaginary part."""
    count = _shape(x)[-1]
    if count not in (1, 2):
        raise ModelError(f"its numbers have {dims.text(count)} parts, need 1 or 2")
    if count == 2:
        return parted(node, x)
    return Parts(node.emit("take", x, node.scalar(0, "int64"), axis=-1))


def _shape(x: Expr) -> tuple[Dim, ...]:
    shape = info_of(x).dims
    if shape is None:
        raise ModelError("the shape of its signal is not known")
    return shape


@converts("STFT")
def short_time_fourier(node: Node) -> Expr:
    """The transform of each frame of a signal, optionally weighted by a window."""
    length = node.shape(0)[1]
    size = length
    if node.has(2):
        size = node.shape(2)[0]
    elif node.has(3):
        size = extent_of(node, 3)
    step = extent_of(node, 1)
    count = dims.add(dims.floordiv(dims.sub(length, size), step), 1)
    frame = counted(node, count, 0, 2)
    begins = node.emit("multiply", frame, number_of(node, step, "int64"))
    places = node.emit("add", begins, counted(node, size, 1, 2))
    frames = node.emit("take", node[0], places, axis=1)
    if node.has(2):
        weights = node.emit("expand_dims", node.cast(node[2], node.dtype(0)), axis=1)
        frames = node.emit("multiply", frames, weights)
    return transformed(node, frames, size, onesided=bool(node.attrs.integer("onesided")))
