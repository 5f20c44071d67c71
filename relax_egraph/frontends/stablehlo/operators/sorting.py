"""Sorts by keys."""

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.stablehlo.node import Node, like
from relax_egraph.frontends.stablehlo.operators.reductions import is_index
from relax_egraph.frontends.stablehlo.reducers import sort_keys
from relax_egraph.frontends.stablehlo.registry import converts
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.expr import Expr


@converts("stablehlo.sort")
def sort(node: Node) -> list[Expr]:
    """All operands in the order of one or several of them along an axis."""
    keys = sort_keys(node.operation.regions[0].blocks[0])
    if keys is None:
        raise ModelError("its comparator is not that of ascending or descending keys")
    axis = node.integer("dimension", node.rank(0) - 1) % node.rank(0)
    ascending = keys == [(0, False)]
    if len(node) == 1 and ascending and dtype_of(node[0]) != "bool":
        return [node.emit("sort", node[0], axis=axis)]
    order: Expr | None = None
    for place, descending in reversed(keys):
        key = node[place] if order is None else taken(node, node[place], order, axis)
        latest = ordered(node, key, axis, descending=descending)
        order = latest if order is None else taken(node, order, latest, axis)
    assert order is not None
    return [
        node.cast(order, node.dtype(k))
        if is_index(node, k, axis)
        else taken(node, node[k], order, axis)
        for k in range(len(node))
    ]


def ordered(node: Node, key: Expr, axis: int, *, descending: bool) -> Expr:
    """The indices of the elements of `key` in stable order; NaN is greater than all numbers."""
    if dtype_of(key) == "bool":
        key = node.cast(key, "int8")
    if descending:
        key = nan_as_infinity(node, key)
    return node.emit("argsort", key, axis=axis, descending=descending, dtype="int64")


def nan_as_infinity(node: Node, key: Expr) -> Expr:
    """`key`, with infinity for NaN, which is then among the first in descending order."""
    if not is_float(dtype_of(key)):
        return key
    return node.emit("where", node.emit("isnan", key), like(float("inf"), key), key)


def taken(node: Node, value: Expr, order: Expr, axis: int) -> Expr:
    """`value` in `order` along `axis`."""
    return node.emit("gather_elements", value, order, axis=axis)
