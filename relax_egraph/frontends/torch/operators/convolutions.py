"""Convolutions, transposed convolutions, and their gradients."""

from collections.abc import Mapping

from relax_egraph.frontends.building.heads import shape_of
from relax_egraph.frontends.building.windows import SPATIAL
from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.frontends.torch.windows import per_axis
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Attr, Expr, ShapeExpr


@converts("aten.convolution.default")
def convolution(node: Node) -> Expr:
    """A convolution or a transposed one, with a bias of each channel."""
    rank = node.rank("input") - 2
    moves = _moves(node, rank)
    groups = node.integer("groups")
    x, weight = node["input"], node["weight"]
    if node.flag("transposed"):
        out = _transposed(node, x, weight, moves, groups, per_axis(node, "output_padding", rank))
    else:
        out = _convolved(node, x, weight, moves, groups)
    bias = node.get("bias")
    if bias is None:
        return out
    return node.emit("add", out, node.emit("expand_dims", bias, axis=tuple(range(1, rank + 1))))


_Moves = Mapping[str, tuple[int, ...]]
"""The attributes `strides`, `padding` and `dilation`, with a value for each axis."""


def _moves(node: Node, rank: int) -> _Moves:
    return {
        "strides": per_axis(node, "stride", rank),
        "padding": per_axis(node, "padding", rank),
        "dilation": per_axis(node, "dilation", rank),
    }


def _convolved(node: Node, x: Expr, weight: Expr, moves: _Moves, groups: int) -> Expr:
    rank = len(moves["strides"])
    letters = SPATIAL[rank]
    layouts: dict[str, Attr] = {"data_layout": f"NC{letters}", "kernel_layout": f"OI{letters}"}
    return node.emit(f"nn.conv{rank}d", x, weight, **moves, groups=groups, **layouts)


def _transposed(
    node: Node, x: Expr, weight: Expr, moves: _Moves, groups: int, extra: tuple[int, ...]
) -> Expr:
    """The transposed convolution; `extra` extends the end of each axis.

    What is beyond the strides is cropped less, or is zeros where nothing is cropped.
    """
    rank = len(extra)
    letters = SPATIAL[rank]
    layouts: dict[str, Attr] = {"data_layout": f"NC{letters}", "kernel_layout": f"IO{letters}"}
    own = tuple(min(e, s - 1) for e, s in zip(extra, moves["strides"], strict=True))
    after = [p - e + o for p, e, o in zip(moves["padding"], extra, own, strict=True)]
    padding = (*moves["padding"], *(max(a, 0) for a in after))
    out = node.emit(
        f"nn.conv{rank}d_transpose",
        x,
        weight,
        **{**moves, "padding": padding},
        output_padding=own,
        groups=groups,
        **layouts,
    )
    if min(after) >= 0:
        return out
    widths = [0, 0, 0, 0]
    for lacking in after:
        widths += [0, max(-lacking, 0)]
    return node.emit("nn.pad", out, pad_width=tuple(widths))


# --- gradients --------------------------------------------------------------------------


@converts("aten.convolution_backward.default")
def convolution_gradients(node: Node) -> tuple[Expr | None, ...]:
    """The gradients of data, weight and bias, where they are wanted."""
    rank = node.rank("input") - 2
    moves, groups = _moves(node, rank), node.integer("groups")
    grad, x, weight = node["grad_output"], node["input"], node["weight"]
    of_data, of_weight, of_bias = node.arguments["output_mask"]
    found: list[Expr | None] = [None, None, None]
    if node.flag("transposed"):
        if of_data:
            found[0] = _convolved(node, grad, weight, moves, groups)
        if of_weight:
            found[1] = _weight_gradient(node, grad, x, shape_of(weight), moves, groups)
    else:
        if of_data:
            found[0] = _data_gradient(node, grad, weight, shape_of(x), moves, groups)
        if of_weight:
            found[1] = _weight_gradient(node, x, grad, shape_of(weight), moves, groups)
    if of_bias:
        found[2] = node.emit("sum", grad, axis=(0, *range(2, rank + 2)))
    return tuple(found)


def _data_gradient(
    node: Node,
    grad: Expr,
    weight: Expr,
    shape: tuple[Dim, ...],
    moves: _Moves,
    groups: int,
) -> Expr:
    """The gradient of data of `shape`: the transposed convolution of that of the result.

    Where strides do not divide the extent, elements at its end may be in no window.
    """
    extra: list[int] = []
    sizes, extents = shape_of(weight)[2:], shape_of(grad)[2:]
    for k, stride in enumerate(moves["strides"]):
        spread = dims.mul(dims.sub(extents[k], 1), stride)
        reach = dims.mul(dims.sub(sizes[k], 1), moves["dilation"][k])
        end = dims.sub(dims.add(spread, dims.add(reach, 1)), 2 * moves["padding"][k])
        lacking = dims.sub(shape[2 + k], end)
        extra.append(lacking if isinstance(lacking, int) else stride - 1)
    whole = _transposed(node, grad, weight, moves, groups, tuple(extra))
    return _cut(node, whole, shape)


def _weight_gradient(
    node: Node,
    data: Expr,
    grad: Expr,
    shape: tuple[Dim, ...],
    moves: _Moves,
    groups: int,
) -> Expr:
    """The gradient of a weight of `shape`: the convolution of `data` by `grad`.

    Images take the place of channels; strides and dilations change roles.
    """
    images, channels, *extents = shape_of(data)
    each = dims.floordiv(channels, groups)
    rank = len(extents)
    behind = tuple(range(2, rank + 2))
    if groups == 1:
        turned = node.emit("permute_dims", data, axes=(1, 0, *behind))
    else:
        split = node.reshaped(data, (images, groups, each, *extents))
        order = (2, 1, 0, *(k + 1 for k in behind))
        turned = node.emit("permute_dims", split, axes=order)
        turned = node.reshaped(turned, (each, dims.mul(images, groups), *extents))
    windows = node.emit("permute_dims", grad, axes=(1, 0, *behind))
    exchanged = {**moves, "strides": moves["dilation"], "dilation": moves["strides"]}
    out = _convolved(node, turned, windows, exchanged, groups)
    return _cut(node, node.emit("permute_dims", out, axes=(1, 0, *behind)), shape)


def _cut(node: Node, x: Expr, shape: tuple[Dim, ...]) -> Expr:
    """The first elements of the spatial axes of `x`, which is of `shape` afterwards."""
    if all(map(dims.equal, shape_of(x), shape)):
        return x
    axes = tuple(range(2, len(shape)))
    return node.emit(
        "strided_slice", x, ShapeExpr((0,) * len(axes)), ShapeExpr(shape[2:]), axes=axes
    )
