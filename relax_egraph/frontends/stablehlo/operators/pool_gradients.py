"""The gradients of pools."""

from collections.abc import Sequence
from itertools import product

from relax_egraph.errors import ModelError
from relax_egraph.frontends.stablehlo.node import Node, like, shape_of
from relax_egraph.frontends.stablehlo.operators.padding import padded
from relax_egraph.frontends.stablehlo.operators.reductions import neutral, with_start
from relax_egraph.frontends.stablehlo.operators.windows import Windows, parts_of
from relax_egraph.frontends.stablehlo.reducers import direction, reducer
from relax_egraph.frontends.stablehlo.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.expr import Expr, const


@converts("stablehlo.select_and_scatter")
def select_and_scatter(node: Node) -> Expr:
    """The gradient of a pool: each window's goes to its first greatest, or least, element."""
    select, scatter = (region.blocks[0] for region in node.operation.regions)
    first = select.operations[0].operation
    way = direction(first) if first.name == "stablehlo.compare" else ""
    if way not in ("GE", "LE", "GT", "LT") or reducer(scatter) != ["add"]:
        raise ModelError("it does not add up at the greatest or least elements")
    rank = node.rank(0)
    ones = (1,) * rank
    widths = node.pairs("padding", rank)
    low, high = tuple(a for a, _ in widths), tuple(b for _, b in widths)
    strides = node.integers("window_strides", ones)
    sizes = node.integers("window_dimensions", ones)
    windows = Windows(sizes, strides, ones, ones, low, high)
    greatest = way[0] == "G"
    least = like(neutral("maximum" if greatest else "minimum", node.dtype(0)), node[0])
    value = padded(node, node[0], least, low, high)
    place = _chosen(node, parts_of(node, value, windows), "greater" if greatest else "less")
    source = node[1]
    zero, whole = like(0, source), None
    shape, steps = shape_of(value), [s - 1 for s in strides]
    for number, at in enumerate(product(*map(range, sizes))):
        here = node.emit("equal", place, like(number, place))
        part = node.emit("where", here, source, zero)
        reach = [
            dims.add(dims.mul(dims.sub(n, 1), s), 1)
            for n, s in zip(shape_of(source), strides, strict=True)
        ]
        rest = [dims.sub(dims.sub(n, a), r) for n, a, r in zip(shape, at, reach, strict=True)]
        spread = padded(node, part, zero, at, rest, steps)
        whole = spread if whole is None else node.emit("add", whole, spread)
    assert whole is not None
    end = [dims.sub(n, b) for n, b in zip(shape, high, strict=True)]
    return with_start(node, "add", node[2], node.sliced(whole, low, end))


def _chosen(node: Node, parts: Sequence[Expr], better: str) -> Expr:
    """The number of the first of `parts` that is the best, elementwise."""
    best = parts[0]
    place = node.filled(const(0, "int32"), shape_of(best))
    for number, part in enumerate(parts[1:], 1):
        is_better = node.emit(better, part, best)
        best = node.emit("where", is_better, part, best)
        place = node.emit("where", is_better, const(number, "int32"), place)
    return place
