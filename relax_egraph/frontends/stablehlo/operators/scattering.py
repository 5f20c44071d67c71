"""Scatters: updates of a tensor at places that indices give."""

from collections.abc import Mapping, Sequence

from jaxlib.mlir.dialects import stablehlo

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.stablehlo.node import Node, like, shape_of
from relax_egraph.frontends.stablehlo.operators.indices import Places, Window, limit, places
from relax_egraph.frontends.stablehlo.reducers import reducer
from relax_egraph.frontends.stablehlo.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Constant, Expr, ShapeExpr, Tuple

_REDUCTIONS: Mapping[str, str] = {
    "second": "update",
    "add": "add",
    "multiply": "mul",
    "maximum": "max",
    "minimum": "min",
}


@converts("stablehlo.scatter")
def scatter(node: Node) -> list[Expr]:
    """Updates of windows; a window that is not within the tensor is left out."""
    count = (len(node) - 1) // 2
    names = reducer(node.operation.regions[0].blocks[0])
    if names is None or any(name not in _REDUCTIONS for name in names):
        raise ModelError("how it combines updates is not one of: " + ", ".join(_REDUCTIONS))
    numbers = stablehlo.ScatterDimensionNumbers(node.attribute("scatter_dimension_numbers"))
    removed = tuple(numbers.inserted_window_dims)
    batching = tuple(numbers.input_batching_dims)
    update_axes = tuple(numbers.update_window_dims)
    window = Window(
        _sizes(node.rank(0), node.shape(count + 1), update_axes, (*removed, *batching)),
        update_axes,
        removed,
        tuple(numbers.scattered_dims_to_operand_dims),
        batching,
        tuple(numbers.scatter_indices_batching_dims),
        numbers.index_vector_dim,
    )
    at = places(node, node.shape(0), node[count], window, clamp=False)
    return [
        _scattered(node, node[k], node[count + 1 + k], window, at, _REDUCTIONS[names[k]])
        for k in range(count)
    ]


def _sizes(
    rank: int, update: Sequence[Dim], axes: Sequence[int], removed: Sequence[int]
) -> tuple[Dim, ...]:
    """The extents of a window, with 1 for the axes that it has not."""
    extents = iter(update[k] for k in axes)
    return tuple(1 if k in removed else next(extents) for k in range(rank))


def _scattered(
    node: Node, value: Expr, update: Expr, window: Window, at: Places, reduction: str
) -> Expr:
    shape, dtype = shape_of(value), dtype_of(value)
    if dtype == "bool":
        whole = _scattered(
            node,
            node.cast(value, "int8"),
            node.cast(update, "int8"),
            window,
            at,
            _OF_BITS[reduction],
        )
        return node.cast(whole, "bool")
    update = node.permuted(update, _order(window, at))
    if not at.axes:
        raise ModelError("it has no index")
    order = [*at.axes, *at.full]
    extents = tuple(shape[k] for k in at.axes)
    rest = tuple(shape[k] for k in at.full)
    rows = dims.product(extents)
    flat = node.reshaped(node.permuted(value, order), (rows, *rest))
    counts = (*at.batch, *(window.sizes[k] for k in at.partial))
    row = _row(node, at, extents)
    inside = _inside(node, shape, window, at)
    if inside is not None:
        row = node.emit("where", inside, row, limit(node, rows, row))
        spare = node.filled(like(0, flat), (1, *rest))
        flat = node.emit("concat", Tuple((flat, spare)), axis=0)
    row = node.reshaped(node.broadcast(row, counts), (dims.product(counts), 1))
    update = node.reshaped(update, (dims.product(counts), *rest))
    whole = node.emit("scatter_nd", flat, row, update, reduction=reduction)
    if inside is not None:
        whole = node.sliced(whole, [0] * (1 + len(rest)), (rows, *rest))
    whole = node.emit("reshape", whole, ShapeExpr((*extents, *rest)))
    return node.permuted(whole, sorted(range(len(order)), key=order.__getitem__))


_OF_BITS = {"update": "update", "add": "max", "max": "max", "mul": "min", "min": "min"}


def _order(window: Window, at: Places) -> list[int]:
    """The axes of an update in the order batch, partial, full."""
    by_axis = dict(zip(window.kept, window.window_axes, strict=True))
    rank = len(at.batch) + len(window.window_axes)
    batch = [k for k in range(rank) if k not in window.window_axes]
    return [*batch, *(by_axis[k] for k in (*at.partial, *at.full))]


def _row(node: Node, at: Places, extents: Sequence[Dim]) -> Expr:
    """The number of the row for indices into axes of `extents`."""
    row: Expr | None = None
    for index, extent in zip(at.indices, extents, strict=True):
        wide = node.cast(index, "int64")
        row = (
            wide
            if row is None
            else node.emit("add", node.emit("multiply", row, limit(node, extent, row)), wide)
        )
    assert row is not None
    return row


def _inside(node: Node, shape: Sequence[Dim], window: Window, at: Places) -> Expr | None:
    """Whether each window is within the tensor; ``None`` if all of them are known to be."""
    inside: Expr | None = None
    for axis, start in at.starts:
        last = dims.sub(shape[axis], window.sizes[axis])
        if isinstance(start, Constant) and isinstance(last, int) and _within(start, last):
            continue
        wide = node.cast(start, "int64")
        least = node.emit("greater_equal", wide, like(0, wide))
        most = node.emit("less_equal", wide, limit(node, last, wide))
        both = node.emit("logical_and", least, most)
        inside = both if inside is None else node.emit("logical_and", inside, both)
    if inside is None:
        return None
    return node.reshaped(inside, (*at.batch, *(1 for _ in at.partial)))


def _within(places: Constant, last: int) -> bool:
    return bool(((places.data >= 0) & (places.data <= last)).all())
