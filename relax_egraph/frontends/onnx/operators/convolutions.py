"""Convolutions and transposed convolutions."""

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.windows import SPATIAL
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.operators.windows import per_axis, windows_of
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.expr import Expr, ShapeExpr


@converts("Conv")
def conv(node: Node) -> Expr:
    """A convolution in NCHW layout, or over one or three axes, with bias."""
    moves = windows_of(node, _sizes(node))
    letters = SPATIAL[moves.rank]
    out = node.emit(
        f"nn.conv{moves.rank}d",
        node[0],
        node[1],
        strides=moves.strides,
        padding=moves.padding,
        dilation=moves.dilations,
        groups=node.attrs.integer("group"),
        data_layout=f"NC{letters}",
        kernel_layout=f"OI{letters}",
    )
    return _with_bias(node, out, moves.rank)


@converts("ConvTranspose")
def conv_transpose(node: Node) -> Expr:
    """A transposed convolution; `output_shape` gives extents that determine the padding."""
    sizes = _sizes(node)
    rank = len(sizes)
    letters = SPATIAL.get(rank, "")
    strides, dilations = per_axis(node, "strides", rank), per_axis(node, "dilations", rank)
    extra = per_axis(node, "output_padding", rank, default=0)
    before, after, extra = _transposed_padding(node, sizes, strides, dilations, extra)
    out = node.emit(
        f"nn.conv{rank}d_transpose",
        node[0],
        node[1],
        strides=strides,
        padding=tuple(max(p, 0) for p in (*before, *after)),
        output_padding=extra,
        dilation=dilations,
        groups=node.attrs.integer("group"),
        data_layout=f"NC{letters}",
        kernel_layout=f"IO{letters}",
    )
    return _with_bias(node, out, rank)


def _transposed_padding(
    node: Node,
    sizes: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    extra: tuple[int, ...],
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The cropping before and after each axis, and the padding of its end."""
    rank = len(sizes)
    if node.attrs.has("output_shape"):
        targets = node.attrs.integers("output_shape")[-rank:]
    elif node.attrs.text("auto_pad").startswith("SAME"):
        targets = [dims.mul(e, s) for e, s in zip(node.shape(0)[2:], strides, strict=True)]
    else:
        pads = per_axis(node, "pads", 2 * rank, default=0)
        return pads[:rank], pads[rank:], extra
    before: list[int] = []
    after: list[int] = []
    behind: list[int] = []
    upper = node.attrs.text("auto_pad") == "SAME_UPPER"
    each = zip(node.shape(0)[2:], targets, sizes, strides, dilations, extra, strict=True)
    for extent, target, size, stride, dilation, more in each:
        whole = dims.add(dims.mul(dims.sub(extent, 1), stride), (size - 1) * dilation + 1 + more)
        total = dims.sub(whole, target)
        if not isinstance(total, int):
            raise ModelError("the padding for its output_shape is known only at run time")
        less, rest = max(total, 0) // 2, max(total, 0) - max(total, 0) // 2
        before.append(rest if not upper else less)
        after.append(less if not upper else rest)
        behind.append(more + max(-total, 0))
    return tuple(before), tuple(after), tuple(behind)


def _sizes(node: Node) -> tuple[int, ...]:
    """The spatial extents of the kernel."""
    if node.attrs.has("kernel_shape"):
        return node.attrs.integers("kernel_shape")
    sizes = node.shape(1)[2:]
    known = tuple(s for s in sizes if isinstance(s, int))
    if len(known) != len(sizes):
        raise ModelError("the extents of its kernel are known only at run time")
    return known


def _with_bias(node: Node, out: Expr, rank: int) -> Expr:
    """`out` plus the bias of each channel, operand 2."""
    if not node.has(2):
        return out
    shape = node.shape(2)
    if len(shape) != 1:
        raise ModelError(f"its bias is of rank {len(shape)}, needs 1")
    (channels,) = shape
    bias = node.emit("reshape", node[2], ShapeExpr((channels, *(1,) * rank)))
    return node.emit("add", out, bias)
