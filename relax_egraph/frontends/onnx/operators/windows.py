"""Windows of convolutions and pools, from the attributes of nodes."""

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.windows import SPATIAL, Windows
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.ir import dims


def windows_of(node: Node, sizes: tuple[int, ...]) -> Windows:
    """The windows of `sizes` that `node` moves over the spatial axes of its first operand."""
    rank = len(sizes)
    if rank not in SPATIAL:
        raise ModelError(f"its windows have {rank} axes, needs 1 to 3")
    strides, dilations = per_axis(node, "strides", rank), per_axis(node, "dilations", rank)
    if node.attrs.has("pads"):
        pads = node.attrs.integers("pads")
        if len(pads) != 2 * rank:
            raise ModelError(f"its pads are {list(pads)}, needs {2 * rank} values")
        return Windows(sizes, strides, dilations, pads[:rank], pads[rank:])
    none = (0,) * rank
    plain = Windows(sizes, strides, dilations, none, none)
    unpadded = node.attrs.schema_default("auto_pad") in (None, "NOTSET", "VALID")
    return plain if unpadded else _padded(node, plain)


def per_axis(node: Node, name: str, rank: int, default: int = 1) -> tuple[int, ...]:
    """The attribute `name`, with a value for each axis."""
    values = node.attrs.integers(name) if node.attrs.has(name) else (default,) * rank
    if len(values) != rank:
        raise ModelError(f"its {name} are {list(values)}, needs {rank} values")
    return values


def _padded(node: Node, plain: Windows) -> Windows:
    """`plain` with padding such that there is a window for every stride into the operand."""
    before: list[int] = []
    after: list[int] = []
    extents = node.shape(0)[2:]
    for extent, stride, reach in zip(extents, plain.strides, plain.reach, strict=True):
        positions = dims.floordiv(dims.add(extent, stride - 1), stride)
        span = dims.add(dims.mul(dims.sub(positions, 1), stride), reach)
        total = dims.maximum(dims.sub(span, extent), 0)
        if not isinstance(total, int):
            raise ModelError(
                f"how much auto_pad pads an extent of {dims.text(extent)} by strides of {stride} "
                "is known only at run time"
            )
        less, more = total // 2, total - total // 2
        upper = node.attrs.text("auto_pad") == "SAME_UPPER"
        before.append(less if upper else more)
        after.append(more if upper else less)
    return Windows(plain.sizes, plain.strides, plain.dilations, tuple(before), tuple(after))
