"""Slices at places that are known, or sizes, or computed at run time."""

from collections.abc import Sequence

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.stablehlo.node import Node, shape_of
from relax_egraph.frontends.stablehlo.operators.indices import clamped, put
from relax_egraph.frontends.stablehlo.registry import converts
from relax_egraph.frontends.stablehlo.values import Value
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr


@converts("stablehlo.slice")
def slice_(node: Node) -> Expr:
    """A slice at places that are known."""
    begin, end = node.integers("start_indices"), node.integers("limit_indices")
    return node.sliced(node[0], begin, end, node.integers("strides"))


@converts("stablehlo.real_dynamic_slice")
def real_dynamic_slice(node: Node) -> Expr:
    """A slice whose places are operands; those of run time are a known size apart."""
    if node.elements(1) is None:
        sizes, rank = _between(node), node.rank(0)
        if set(node.known(3)) - {1}:
            raise ModelError("it begins at run time, and has strides")
        starts = [node.sliced(node[1], (k,), (k + 1,)) for k in range(rank)]
        return dynamic_slice_of(node, [Value(node.reshaped(s, ())) for s in starts], sizes)
    return node.sliced(node[0], node.sizes(1), node.sizes(2), node.known(3))


def _between(node: Node) -> tuple[Dim, ...]:
    """What is added to the first places to give the last ones."""
    begin, end = node.operation.operands[1], node.operation.operands[2]
    if getattr(end.owner, "name", "") == "stablehlo.add":
        for own, other in (tuple(end.owner.operands), tuple(end.owner.operands)[::-1]):
            elements = node.scope[other].elements
            if own == begin and elements is not None:
                return elements.dims
    raise ModelError("its size is computed at run time")


@converts("stablehlo.dynamic_slice")
def dynamic_slice(node: Node) -> Expr:
    """A slice of a known size, that begins where operands say, and within the tensor."""
    return dynamic_slice_of(node, node.operands[1:], node.integers("slice_sizes"))


def dynamic_slice_of(node: Node, starts: Sequence[Value], sizes: Sequence[Dim]) -> Expr:
    """The slice of the first operand of `sizes`, as near to `starts` as it fits."""
    value = node[0]
    for axis, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        extent = shape_of(value)[axis]
        if dims.equal(extent, size):
            continue
        if (at := _known_start(node, start, extent, size)) is not None:
            begin: list[Dim] = [0] * len(sizes)
            end = list(shape_of(value))
            begin[axis], end[axis] = at, dims.add(at, size)
            value = node.sliced(value, begin, end)
            continue
        first = clamped(node, node.scope.expr(start), extent, size)
        if size == 1:
            places = node.reshaped(first, (1,))
        else:
            places = node.emit("add", first, node.iota(size, dtype_of(first)))
        value = node.emit("take", value, places, axis=axis)
    return value


@converts("stablehlo.dynamic_update_slice")
def dynamic_update_slice(node: Node) -> Expr:
    """A tensor with a slice replaced, that begins where operands say, and within the tensor."""
    value, update = node[0], node[1]
    shape, sizes = shape_of(value), shape_of(update)
    axes = [k for k, n in enumerate(shape) if not dims.equal(n, sizes[k])]
    if not axes:
        return update
    places: list[Expr] = []
    for number, axis in enumerate(axes):
        start = node[2 + axis]
        first = clamped(node, start, shape[axis], sizes[axis])
        along = node.emit("add", first, node.iota(sizes[axis], dtype_of(first)))
        spread: list[Dim] = [1] * len(axes)
        spread[number] = sizes[axis]
        places.append(node.reshaped(along, spread))
    rest = [k for k in range(len(shape)) if k not in axes]
    order = [*axes, *rest]
    turned = put(node, node.permuted(value, order), places, node.permuted(update, order))
    back = sorted(range(len(order)), key=order.__getitem__)
    return node.permuted(turned, back)


def _known_start(node: Node, start: Value, extent: Dim, size: Dim) -> Dim | None:
    """Where a slice begins, if that is known now and within the tensor."""
    if start.elements is None:
        return None
    (at,) = start.elements.dims
    if not node.program.at_least(at, 0):
        return 0 if isinstance(at, int) else None
    last = dims.sub(extent, size)
    return at if node.program.at_least(last, at) else None


@converts("stablehlo.set_dimension_size")
def set_dimension_size(node: Node) -> Expr:
    """The operand, if the size is that of the axis."""
    axis = node.integer("dimension")
    if not dims.equal(node.sizes(1)[0], node.shape(0)[axis]):
        raise ModelError("a size other than that of the axis is not supported")
    return node[0]
