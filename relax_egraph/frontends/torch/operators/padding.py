"""Borders around tensors."""

from collections.abc import Sequence

from relax_egraph.frontends.building.borders import between, without_ends
from relax_egraph.frontends.building.builder import shape_of
from relax_egraph.frontends.torch.checks import require_nonnegative
from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr


@converts("aten.constant_pad_nd.default")
def constant_pad(node: Node) -> Expr:
    """A border of one value; negative widths crop."""
    pairs, x = _pairs(node, "pad"), node["self"]
    widths = _positive(pairs)
    numbers, value = _numbers(widths), node.arguments["value"]
    if numbers is None or not isinstance(value, bool | int | float):
        fill = node.operand("value", node.out_dtype)
        for axis, (before, after) in enumerate(widths):
            x = between(node, x, axis, before, after, fill)
    elif any(numbers):
        x = node.emit("nn.pad", x, pad_width=numbers, pad_value=float(value))
    return _without(node, x, pairs)


@converts(
    "aten.reflection_pad1d.default",
    "aten.reflection_pad2d.default",
    "aten.reflection_pad3d.default",
)
def reflection_pad(node: Node) -> Expr:
    """A border that goes back from the last element, which it does not repeat."""
    pairs = _pairs(node, "padding")
    for axis, (pair, extent) in enumerate(zip(pairs, node.shape("self"), strict=True)):
        for width in pair:
            if dims.prove_ge(0, width):
                continue
            require_nonnegative(
                node,
                dims.sub(dims.sub(extent, 1), width),
                "Padding size should be less than the corresponding input dimension, but got: "
                f"padding {dims.text(width)} at dimension {axis}",
            )
    return _bordered(node, pairs, "reflect")


@converts(
    "aten.replication_pad1d.default",
    "aten.replication_pad2d.default",
    "aten.replication_pad3d.default",
)
def replication_pad(node: Node) -> Expr:
    """A border of the nearest elements; negative widths crop."""
    return _bordered(node, _pairs(node, "padding"), "replicate")


def _bordered(node: Node, pairs: Sequence[tuple[Dim, Dim]], mode: str) -> Expr:
    widths, x = _positive(pairs), node["self"]
    numbers = _numbers(widths)
    if numbers is None:
        for axis, (before, after) in enumerate(widths):
            if before != 0 or after != 0:
                x = _by_places(node, x, axis, (before, after), mode)
    elif any(numbers):
        x = node.emit("nn.pad", x, pad_width=numbers, pad_mode=mode)
    return _without(node, x, pairs)


def _by_places(node: Node, x: Expr, axis: int, widths: tuple[Dim, Dim], mode: str) -> Expr:
    """`x` with a border along an axis whose `widths` the run knows: its elements, taken."""
    extent, (before, after) = shape_of(x)[axis], widths
    count = node.sequence(dims.add(dims.add(before, extent), after))
    places = node.emit("subtract", count, node.as_tensor(before, "int64"))
    last = node.as_tensor(dims.sub(extent, 1), "int64")
    if mode == "reflect":
        from_end = node.emit("abs", node.emit("subtract", last, node.emit("abs", places)))
        places = node.emit("subtract", last, from_end)
    return node.emit("take", x, places, axis=axis, mode="clip")


def _pairs(node: Node, name: str) -> list[tuple[Dim, Dim]]:
    """The widths before and after each axis; torch has them of the last axis first."""
    widths = node.sizes(name)
    last = [*zip(widths[::2], widths[1::2], strict=True)]
    return [(0, 0)] * (node.rank("self") - len(last)) + last[::-1]


def _numbers(pairs: Sequence[tuple[Dim, Dim]]) -> tuple[int, ...] | None:
    widths = [width for pair in pairs for width in pair]
    numbers = tuple(width for width in widths if isinstance(width, int))
    return numbers if len(numbers) == len(widths) else None


def _without(node: Node, x: Expr, pairs: Sequence[tuple[Dim, Dim]]) -> Expr:
    """`x` without what negative widths remove; the border is there before, as it reads them."""
    for axis, pair in enumerate(pairs):
        less = [dims.maximum(dims.mul(width, -1), 0) for width in pair]
        x = without_ends(node, x, axis, less[0], less[1])
    return x


def _positive(pairs: Sequence[tuple[Dim, Dim]]) -> list[tuple[Dim, Dim]]:
    return [(dims.maximum(before, 0), dims.maximum(after, 0)) for before, after in pairs]
