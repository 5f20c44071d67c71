"""Reductions over axes, by the operations that are known."""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from jaxlib.mlir import ir

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.stablehlo.graph import applied
from relax_egraph.frontends.stablehlo.node import Node, like, number_of, shape_of
from relax_egraph.frontends.stablehlo.operators.elementwise import combined
from relax_egraph.frontends.stablehlo.reducers import reducer, selects_extreme
from relax_egraph.frontends.stablehlo.registry import converts
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.expr import Expr

_MOST_SLICES = 256
"""The most elements that an unknown reduction combines one after the other."""

_OPERATORS: Mapping[str, str] = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
}
_OF_BOOLEANS: Mapping[str, str] = {
    "add": "max",
    "or": "max",
    "maximum": "max",
    "multiply": "min",
    "and": "min",
    "minimum": "min",
    "xor": "sum",
}


@converts("stablehlo.reduce")
def reduce(node: Node) -> list[Expr]:
    """Each operand reduced over some axes; or values and places of the greatest or least."""
    block = node.operation.regions[0].blocks[0]
    count = len(node) // 2
    axes = node.integers("dimensions")
    names = reducer(block)
    if names is None:
        extreme = selects_extreme(block)
        if extreme is not None and len(axes) == 1:
            return _extreme(node, extreme, axes[0])
        return _applied(node, block, count, axes)
    return [
        with_start(node, names[k], node[count + k], reduced(node, names[k], node[k], axes))
        for k in range(count)
    ]


def _applied(node: Node, block: ir.Block, count: int, axes: Sequence[int]) -> list[Expr]:
    """The operands reduced by `block`, applied to one slice along `axes` after the other."""
    shape = node.shape(0)
    extents = [extent for k in axes if isinstance(extent := shape[k], int)]
    number = prod(extents)
    if len(extents) < len(axes) or number > _MOST_SLICES:
        raise ModelError(f"an unknown reduction: of no more than {_MOST_SLICES} known elements")
    others = [k for k in range(len(shape)) if k not in axes]
    rest = tuple(shape[k] for k in others)
    rows = [
        node.reshaped(node.permuted(node[k], (*axes, *others)), (number, *rest))
        for k in range(count)
    ]
    whole = [node.broadcast(node[count + k], rest) for k in range(count)]
    zeros = (0,) * len(rest)
    for at in range(number):
        slices = [node.sliced(r, (at, *zeros), (at + 1, *rest)) for r in rows]
        slices = [node.reshaped(s, rest) for s in slices]
        whole = applied(block, [*whole, *slices], node.program, node.scope)
    return whole


@converts("stablehlo.map")
def apply(node: Node) -> list[Expr]:
    """A region of operations on scalars, for each element."""
    operands = [node[k] for k in range(len(node))]
    return applied(node.operation.regions[0].blocks[0], operands, node.program, node.scope)


def reduced(node: Node, name: str, value: Expr, axes: Sequence[int]) -> Expr:
    """`value` reduced over `axes` by the operation `name`, from its neutral element."""
    if not axes:
        return value
    if dtype_of(value) == "bool":
        if name not in _OF_BOOLEANS:
            raise ModelError(f"booleans are not reduced by {name}")
        whole = node.emit(_OF_BOOLEANS[name], node.cast(value, "int32"), axis=tuple(axes))
        if name == "xor":
            whole = node.emit("bitwise_and", whole, like(1, whole))
        return node.emit("greater", whole, like(0, whole))
    if name not in _OPERATORS:
        raise ModelError(f"numbers are not reduced by {name}")
    return node.emit(_OPERATORS[name], value, axis=tuple(axes))


def with_start(node: Node, name: str, start: Expr, value: Expr) -> Expr:
    """`value` combined with `start`, unless that is neutral."""
    if number_of(start) == neutral(name, dtype_of(value)):
        return value
    return combined(node, name, value, start)


def neutral(name: str, dtype: str) -> float | bool | int:
    """What the operation `name` leaves every other operand as it is with."""
    if dtype == "bool":
        return name in ("multiply", "and", "minimum")
    if name in ("add", "or", "xor"):
        return 0
    if name == "multiply":
        return 1
    if name == "and":
        return -1
    if is_float(dtype):
        return float("-inf") if name == "maximum" else float("inf")
    limits = np.iinfo(dtype)
    return int(limits.min if name == "maximum" else limits.max)


def _extreme(node: Node, name: str, axis: int) -> list[Expr]:
    """The greatest or least values along `axis`, and what the second operand has at their place."""
    value, index = node[0], node[1]
    place = node.emit(name, value, axis=axis)
    best = node.emit(name.removeprefix("arg"), value, axis=axis)
    if is_index(node, 1, axis):
        return [best, node.cast(place, dtype_of(index))]
    shape = shape_of(value)
    apart = node.reshaped(place, (*shape[:axis], 1, *shape[axis + 1 :]))
    return [
        best,
        node.emit("squeeze", node.emit("gather_elements", index, apart, axis=axis), axis=axis),
    ]


def is_index(node: Node, place: int, axis: int) -> bool:
    """Whether the operand at `place` is the index along `axis`."""
    value = node.operation.operands[place]
    owner = value.owner
    if getattr(owner, "name", "") not in ("stablehlo.iota", "stablehlo.dynamic_iota"):
        return False
    return int(owner.attributes["iota_dimension"].value) == axis
