"""Cumulative functions along an axis."""

from collections.abc import Callable, Sequence

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.operators.reductions import countable
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.expr import Expr, ShapeExpr, Tuple

Scanned = Sequence[Expr]
"""Tensors that are scanned together, such as values and their indices."""


@converts("aten.cumsum.default", "aten.cumprod.default")
def scan(node: Node) -> Expr:
    """A cumulative sum or product in the dtype of the result, which is int64 of integers."""
    x, rank = node.operand("self", node.out_dtype), node.rank("self")
    if rank == 0:
        return x
    return node.emit(node.op.split(".")[1], x, axis=node.axis("dim", rank))


@converts("aten.logcumsumexp.default")
def log_sum(node: Node) -> Expr:
    """``ln Σ e^x`` of each element and those before it."""

    def joined(before: Scanned, here: Scanned) -> Scanned:
        return [node.emit("log_add_exp", before[0], here[0])]

    return _doubling(node, [node["self"]], joined)[0]


@converts("aten.cummax.default", "aten.cummin.default")
def extreme(node: Node) -> list[Expr]:
    """The extreme of each element and those before it, and its last index; NaN stays."""
    name = "greater" if ".cummax." in node.op else "less"
    x, rank = countable(node), node.rank("self")
    if rank == 0:
        return [node["self"], node.emit("zeros_like", x, dtype="int64")]
    shape = node.shape("self")
    axis = node.axis("dim", rank)
    count = node.sequence(shape[axis])
    row = node.reshaped(count, [shape[k] if k == axis else 1 for k in range(rank)])
    places = node.emit("broadcast_to", row, ShapeExpr(shape))

    def joined(before: Scanned, here: Scanned) -> Scanned:
        stays = node.emit(name, before[0], here[0])
        if is_float(dtype_of(x)):
            lost, new = (node.emit("isnan", v[0]) for v in (before, here))
            lost = node.emit("logical_and", lost, node.emit("logical_not", new))
            stays = node.emit("logical_or", stays, lost)
        return [node.emit("where", stays, b, h) for b, h in zip(before, here, strict=True)]

    values, indices = _doubling(node, [x, places], joined)
    return [node.cast(values, node.out_dtype), indices]


def _doubling(
    node: Node, values: Scanned, joined: Callable[[Scanned, Scanned], Scanned]
) -> Scanned:
    """The scan of an associative function: each step joins spans that are twice as long."""
    rank = node.rank("self")
    if rank == 0:
        return values
    axis = node.axis("dim", rank)
    size = node.shape("self")[axis]
    if not isinstance(size, int):
        raise ModelError(f"it scans an axis of {size} elements, needs a size that is known now")

    def part(value: Expr, begin: int, end: int) -> Expr:
        bounds = ShapeExpr((begin,)), ShapeExpr((end,))
        return node.emit("strided_slice", value, *bounds, axes=(axis,))

    span = 1
    while span < size:
        before = [part(v, 0, size - span) for v in values]
        here = [part(v, span, size) for v in values]
        both = zip(values, joined(before, here), strict=True)
        values = [node.emit("concat", Tuple((part(v, 0, span), j)), axis=axis) for v, j in both]
        span *= 2
    return values
