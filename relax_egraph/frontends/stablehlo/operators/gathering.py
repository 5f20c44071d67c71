"""Gathers: slices of a tensor at places that indices give."""

from jaxlib.mlir.dialects import stablehlo

from relax_egraph.frontends.stablehlo.node import Node, shape_of
from relax_egraph.frontends.stablehlo.operators.indices import Places, Window, places
from relax_egraph.frontends.stablehlo.registry import converts
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, Tuple


@converts("stablehlo.gather")
def gather(node: Node) -> Expr:
    """Slices of known size."""
    return _gather(node, node.integers("slice_sizes"))


@converts("stablehlo.dynamic_gather")
def dynamic_gather(node: Node) -> Expr:
    """Slices whose size is an operand."""
    return _gather(node, node.sizes(2))


def _gather(node: Node, sizes: tuple[Dim, ...]) -> Expr:
    numbers = stablehlo.GatherDimensionNumbers(node.attribute("dimension_numbers"))
    window = Window(
        sizes,
        tuple(numbers.offset_dims),
        tuple(numbers.collapsed_slice_dims),
        tuple(numbers.start_index_map),
        tuple(numbers.operand_batching_dims),
        tuple(numbers.start_indices_batching_dims),
        numbers.index_vector_dim,
    )
    value, shape = node[0], node.shape(0)
    at = places(node, shape, node[1], window, clamp=True)
    if not at.axes:
        read = node.broadcast(value, (*at.batch, *shape))
    elif len(at.axes) == 1 and not at.partial:
        axis = at.axes[0]
        taken = node.emit("take", value, at.indices[0], axis=axis)
        return node.permuted(taken, _order(window, at, before=axis))
    else:
        order = [*at.axes, *at.full]
        whole = node.permuted(value, order)
        read = node.emit("index_tensor", whole, Tuple(at.indices))
        count = len(at.batch) + len(at.partial)
        wanted = (*at.batch, *(sizes[k] for k in at.partial))
        if shape_of(read)[:count] != wanted:
            read = node.broadcast(read, (*wanted, *shape_of(read)[count:]))
    return node.permuted(read, _order(window, at))


def _order(window: Window, at: Places, before: int = 0) -> list[int]:
    """The axes of what is read in the order of the result.

    What is read has `before` of the whole axes in front of the axes of the batch.
    """
    kept = window.kept
    read = [*at.full[:before], *(["batch"] * len(at.batch)), *at.partial, *at.full[before:]]
    batch = iter(k for k, axis in enumerate(read) if axis == "batch")
    rank = len(at.batch) + len(kept)
    where = {axis: kept[k] for k, axis in enumerate(window.window_axes)}
    return [read.index(where[k]) if k in where else next(batch) for k in range(rank)]
