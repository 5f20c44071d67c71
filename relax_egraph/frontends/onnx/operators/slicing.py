"""Slices of tensors, and padding."""

from collections.abc import Mapping, Sequence

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of, info_of
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.operators.borders import add_border
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Attr, Expr, ShapeExpr, const
from relax_egraph.ir.struct_info import TensorStructInfo, tensor

_PAD_MODES: Mapping[str, str] = {
    "constant": "constant",
    "edge": "replicate",
    "reflect": "reflect",
    "wrap": "circular",
}


@converts("Slice")
def slice_(node: Node) -> Expr:
    """``x[…, start:end:step, …]`` along some axes, as Python slices."""
    if node.attrs.has("starts"):
        starts, ends = node.attrs.integers("starts"), node.attrs.integers("ends")
        axes = node.attrs.integers("axes") if node.attrs.has("axes") else range(len(starts))
        begin, end = ShapeExpr(tuple(starts)), ShapeExpr(tuple(ends))
        return node.emit("strided_slice", node[0], begin, end, axes=tuple(axes))
    starts, ends = node.elements(1), node.elements(2)
    axes, steps = _numbers(node, 3), _numbers(node, 4)
    if starts is None or ends is None or isinstance(axes, Expr) or isinstance(steps, Expr):
        return _slice_at_run_time(node, axes, steps)
    count = len(starts.dims)
    places = tuple(range(count)) if axes is None else axes
    begin, end = ShapeExpr(starts.dims), ShapeExpr(ends.dims)
    return node.emit("strided_slice", node[0], begin, end, axes=places, strides=steps)


def _numbers(node: Node, place: int) -> tuple[int, ...] | Expr | None:
    """Operand `place` as numbers, or as a tensor; ``None`` if it is absent."""
    if not node.has(place):
        return None
    known = node.integers(place)
    return node[place] if known is None else known


def _slice_at_run_time(
    node: Node, axes: tuple[int, ...] | Expr | None, steps: tuple[int, ...] | Expr | None
) -> Expr:
    shape = node.info(1).dims
    count = shape[0] if shape else None
    if axes is None:
        if not isinstance(count, int):
            raise ModelError("the number of sliced axes is known only at run time")
        axes = tuple(range(count))
    out = tensor(None, node.dtype(0), node.info(0).ndim)
    return node.emit_late(
        "strided_slice", node[0], node[1], node[2], axes=axes, strides=steps, out=out
    )


@converts("Pad")
def pad(node: Node) -> Expr:
    """A border around the operand; negative widths crop it."""
    mode = node.attrs.text("mode")
    if mode not in _PAD_MODES:
        raise ModelError(f"its mode is {mode!r}")
    settings: dict[str, Attr | Expr] = {"pad_mode": _PAD_MODES[mode], "pad_value": _fill(node)}
    name = "pads" if node.attrs.has("pads") else "paddings"
    pads = node.attrs.integers(name) if node.attrs.has(name) else node.integers(1)
    axes, rank = _numbers(node, 3), node.rank(0)
    if isinstance(axes, Expr):
        return _pad_at_run_time(node, axes, settings)
    places = range(rank) if axes is None else [node.normalized(a, rank) for a in axes]
    if pads is None:
        x = add_border(node, places, settings["pad_value"]) if mode == "constant" else None
        return _pad_at_run_time(node, axes, settings) if x is None else x
    if len(pads) != 2 * len(places):
        raise ModelError(f"its pads are {list(pads)}, needs {2 * len(places)} values")
    before, after = [0] * rank, [0] * rank
    for place, width_before, width_after in zip(
        places, pads[: len(pads) // 2], pads[len(pads) // 2 :], strict=True
    ):
        before[place], after[place] = width_before, width_after
    x = _cropped(node, before, after)
    widths = [max(n, 0) for pair in zip(before, after, strict=True) for n in pair]
    if not any(widths):
        return x
    if isinstance(settings["pad_value"], Expr):
        return node.emit_late("nn.pad", x, pad_width=tuple(widths), out=_padded(x), **settings)
    attrs = {name: value for name, value in settings.items() if not isinstance(value, Expr)}
    return node.emit("nn.pad", x, pad_width=tuple(widths), **attrs)


def _padded(x: Expr) -> TensorStructInfo:
    return tensor(None, dtype_of(x), info_of(x).ndim)


def _fill(node: Node) -> float | Expr:
    """The value of the border."""
    if node.attrs.has("value"):
        return node.attrs.number("value")
    if not node.has(2):
        return 0.0
    constant = node.constant(2)
    return node[2] if constant is None else float(constant.data.item())


def _cropped(node: Node, before: Sequence[int], after: Sequence[int]) -> Expr:
    """The operand without the elements that negative widths remove."""
    axes = [k for k, pair in enumerate(zip(before, after, strict=True)) if min(pair) < 0]
    if not axes:
        return node[0]
    begin: list[Dim] = [max(-before[k], 0) for k in axes]
    end: list[Dim] = [min(after[k], 0) or 1 << 62 for k in axes]
    return node.emit(
        "strided_slice", node[0], ShapeExpr(tuple(begin)), ShapeExpr(tuple(end)), axes=tuple(axes)
    )


def _pad_at_run_time(
    node: Node, axes: tuple[int, ...] | Expr | None, settings: Mapping[str, Attr | Expr]
) -> Expr:
    """A border whose widths are known only at run time: a tensor of all starts, then all ends."""
    rank = node.rank(0)
    pairs = node.emit("reshape", node[1], _halves(node))
    by_axis = node.emit("permute_dims", pairs)
    if axes is not None:
        places = const(list(axes), "int64") if isinstance(axes, tuple) else axes
        negative = node.emit("less", places, node.scalar(0, dtype_of(places)))
        nonnegative = node.emit("add", places, node.scalar(rank, dtype_of(places)))
        where = node.emit("where", negative, nonnegative, places)
        rows = node.emit("expand_dims", where, axis=1)
        zeros = node.emit("zeros", ShapeExpr((rank, 2)), dtype="int64")
        by_axis = node.emit("scatter_nd", zeros, rows, by_axis)
    widths = node.emit("reshape", by_axis, ShapeExpr((2 * rank,)))
    return node.emit_late("nn.pad", node[0], pad_width=widths, out=_padded(node[0]), **settings)


def _halves(node: Node) -> ShapeExpr:
    """The shape of operand 1 as two rows."""
    shape = node.shape(1)
    if len(shape) != 1:
        raise ModelError(f"its pads are of rank {len(shape)}, needs 1")
    (count,) = shape
    if not isinstance(count, int):
        raise ModelError("the number of padded axes is known only at run time")
    return ShapeExpr((2, count // 2))
