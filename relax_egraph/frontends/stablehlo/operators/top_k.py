"""The greatest elements along an axis."""

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.stablehlo.node import Node, shape_of
from relax_egraph.frontends.stablehlo.operators.sorting import nan_as_infinity, ordered, taken
from relax_egraph.frontends.stablehlo.reducers import sort_keys
from relax_egraph.frontends.stablehlo.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.expr import Expr


@converts("chlo.top_k")
def top_k(node: Node) -> list[Expr]:
    """The greatest elements along the last axis, and their indices."""
    source = "composite_attributes"
    if node.has(source):
        return _best(node, int(node.attribute(source)["k"].value), node.rank(0) - 1)
    return _best(node, node.integer("k"), node.rank(0) - 1)


@converts("@mhlo.topk")
def mhlo_topk(node: Node) -> list[Expr]:
    """The same as a custom call."""
    attributes = node.attribute("mhlo.attributes")
    largest = "largest" not in attributes or bool(attributes["largest"].value)
    k = int(attributes["k"].value)
    return _best(node, k, node.rank(0) - 1, largest=largest)


@converts("@stablehlo.dynamic_top_k")
def dynamic_top_k(node: Node) -> list[Expr]:
    """The same, of a number that is an operand."""
    return _best(node, node.sizes(1)[0], node.rank(0) - 1)


@converts("@ApproxTopK", "@stablehlo.dynamic_approx_top_k")
def approximate_top_k(node: Node) -> list[Expr]:
    """The exact ones, and what the second operand has there."""
    (callee,) = node.attribute("called_computations")
    keys = sort_keys(node.program.function(callee.value).regions[0].blocks[0])
    if keys is None or len(keys) != 1 or keys[0][0] != 0:
        raise ModelError("its comparator is not that of its first operand")
    config = "mhlo.backend_config"
    options = node.attribute(config if node.has(config) else "backend_config")
    axis = int(options["reduction_dim"].value)
    dynamic = node.name == "@stablehlo.dynamic_approx_top_k"
    k = node.sizes(len(node) - 1)[0] if dynamic else node.static_shape()[axis]
    values, order = _best(node, k, axis % node.rank(0), largest=keys[0][1])
    return [values, taken(node, node[1], order, axis)]


def _best(node: Node, k: Dim, axis: int, *, largest: bool = True) -> list[Expr]:
    value = node[0]
    if isinstance(k, int) and k > 0:
        key = nan_as_infinity(node, value) if largest else value
        values, order = node.fields(
            node.emit("topk", key, k=k, axis=axis, largest=largest, dtype="int32")
        )
        if largest and is_float(dtype_of(value)):
            values = taken(node, value, order, axis)
        return [values, order]
    order = node.cast(ordered(node, value, axis, descending=largest), "int32")
    shape = shape_of(value)
    wanted = (*shape[:axis], dims.minimum(k, shape[axis]), *shape[axis + 1 :])
    order = node.sliced(order, [0] * len(shape), wanted)
    return [taken(node, value, order, axis), order]
