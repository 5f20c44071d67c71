"""Windows over spatial axes, from the arguments of nodes."""

from relax_egraph.frontends.building.builder import info_of
from relax_egraph.frontends.building.windows import Windows
from relax_egraph.frontends.torch.node import Node
from relax_egraph.ir.expr import Expr


def per_axis(node: Node, name: str, rank: int) -> tuple[int, ...]:
    """The argument `name` with a value for each axis: one value is for all axes."""
    values = node.integers(name)
    return values * rank if len(values) == 1 else values


def windows_of(node: Node, rank: int) -> Windows:
    """The windows that a pool moves over `rank` axes; without strides they do not overlap."""
    sizes = per_axis(node, "kernel_size", rank)
    strides = per_axis(node, "stride", rank) if node.arguments["stride"] else sizes
    has_dilation = node.has("dilation")
    dilations = per_axis(node, "dilation", rank) if has_dilation else (1,) * rank
    padding = per_axis(node, "padding", rank)
    return Windows(sizes, strides, dilations, padding, padding)


def with_batch(node: Node, x: Expr, rank: int) -> Expr:
    """Images of `rank` spatial axes as a batch: a single image is a batch of one."""
    return x if info_of(x).ndim == rank + 2 else node.emit("expand_dims", x, axis=0)


def like_self(node: Node, batch: Expr, rank: int) -> Expr:
    """`batch`, or its only image if the argument self is a single image."""
    is_batch = node.rank("self") == rank + 2
    return batch if is_batch else node.emit("squeeze", batch, axis=0)
