"""Writes at index tensors along an axis, and reductions of what is written."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import shape_of
from relax_egraph.frontends.torch.checks import checked_indices
from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.expr import Constant, Expr, ShapeExpr, const

_REDUCTIONS: Mapping[str, str] = {
    "add": "add",
    "sum": "add",
    "mean": "add",
    "multiply": "mul",
    "prod": "mul",
    "amax": "max",
    "amin": "min",
}
"""Our reductions by torch's names."""


@dataclass(frozen=True, slots=True)
class Target:
    """A tensor that is written at `index`, a tensor of its rank, along `axis`."""

    x: Expr
    index: Expr
    axis: int

    def written(self, node: Node, source: Expr, reduction: str = "update") -> Expr:
        """The tensor with `source` written."""
        return node.emit(
            "scatter_elements", self.x, self.index, source, axis=self.axis, reduction=reduction
        )

    def filled(self, node: Node, value: Expr) -> Expr:
        """`value` for each index."""
        shape = shape_of(self.index)
        return node.emit("full", ShapeExpr(shape), value)


def _target(node: Node) -> Target:
    """The argument `self`, written at `index` along `dim`."""
    axis, x = node.axis("dim", node.rank("self")), node.ranked("self")
    shape = shape_of(x)
    index = checked_indices(node, node.ranked("index"), shape[axis], from_end=False)
    return Target(x, index, axis)


def _source(node: Node, target: Target) -> Expr:
    """The argument `src`, of which an element for each index is written: its first ones."""
    source = node.ranked("src")
    own, shape = shape_of(source), shape_of(target.index)
    axes = tuple(k for k, (have, used) in enumerate(zip(own, shape, strict=True)) if have != used)
    if not axes:
        return source
    begin, end = ShapeExpr((0,) * len(axes)), ShapeExpr(tuple(shape[k] for k in axes))
    return node.emit("strided_slice", source, begin, end, axes=axes)


@converts("aten.scatter.src", "aten.scatter.reduce", "aten.scatter_add.default")
def scatter(node: Node) -> Expr:
    """Elements written, or added, or multiplied, at indices along an axis."""
    if _is_untouched(node):
        return node["self"]
    target = _target(node)
    reduction = "add" if ".scatter_add." in node.op else _plain_reduction(node)
    return _shaped(node, _reduced(node, target, _source(node, target), reduction))


@converts("aten.scatter.value", "aten.scatter.value_reduce")
def scatter_value(node: Node) -> Expr:
    """A number written, or added, or multiplied, at indices along an axis."""
    if _is_untouched(node):
        return node["self"]
    target = _target(node)
    source = target.filled(node, node.operand("value", node.out_dtype))
    return _shaped(node, _reduced(node, target, source, _plain_reduction(node)))


@converts("aten.scatter_reduce.two")
def scatter_reduce(node: Node) -> Expr:
    """Elements combined, of one index with each other, and with what is there or without it."""
    if _is_untouched(node):
        return node["self"]
    target = _target(node)
    return _shaped(node, _combined(node, target, _source(node, target)))


@converts("aten.index_reduce.default")
def index_reduce(node: Node) -> Expr:
    """Slices combined, those of one index with each other, and with what is there or without it."""
    if 0 in node.shape("source") or 0 in node.out_shape:
        return node["self"]
    source, axis = node.ranked("source"), node.axis("dim", node.rank("self"))
    shape = shape_of(source)
    row = tuple(d if k == axis else 1 for k, d in enumerate(shape))
    x = node.ranked("self")
    own = shape_of(x)
    at = checked_indices(node, node.reshaped(node["index"], row), own[axis], from_end=False)
    return _shaped(node, _combined(node, Target(x, node.stretched(at, shape), axis), source))


@converts("aten.put.default")
def put(node: Node) -> Expr:
    """Elements written, or added, at indices in row-major order."""
    if 0 in node.shape("index"):
        return node["self"]
    flat = node.emit("flatten", node["self"])
    (count,) = shape_of(flat)
    index = checked_indices(node, node.emit("flatten", node["index"]), count)
    source = node.emit("flatten", node.operand("source", node.out_dtype))
    reduction = "add" if node.flag("accumulate") else "update"
    return _shaped(node, _reduced(node, Target(flat, index, 0), source, reduction))


def _is_untouched(node: Node) -> bool:
    return 0 in node.shape("index") or 0 in node.out_shape


def _shaped(node: Node, result: Expr) -> Expr:
    return node.reshaped(result, node.out_shape)


def _plain_reduction(node: Node) -> str:
    return _reduction(node.text("reduce")) if node.has("reduce") else "update"


def _reduction(name: str) -> str:
    if name not in _REDUCTIONS:
        raise ModelError(f"its argument reduce is {name!r}, needs one of {', '.join(_REDUCTIONS)}")
    return _REDUCTIONS[name]


def _reduced(node: Node, target: Target, source: Expr, reduction: str) -> Expr:
    """`source` combined with what is there; of booleans, a sum is an or and a product an and."""
    if node.out_dtype != "bool" or reduction == "update":
        return target.written(node, source, reduction)
    as_bytes = replace(target, x=node.cast(target.x, "uint8"))
    of_bytes = {"add": "max", "mul": "min"}.get(reduction, reduction)
    return node.cast(as_bytes.written(node, node.cast(source, "uint8"), of_bytes), "bool")


def _combined(node: Node, target: Target, source: Expr) -> Expr:
    """`source` combined as the arguments `reduce` and `include_self` have it."""
    name, with_self = node.text("reduce"), node.flag("include_self")
    reduction = _reduction(name)
    if not with_self:
        neutral = target.filled(node, _neutral(reduction, node.out_dtype))
        target = replace(target, x=target.written(node, neutral))
    result = _reduced(node, target, source, reduction)
    if name != "mean":
        return result
    start = node.emit("ones_like" if with_self else "zeros_like", target.x)
    one = node.scalar(1, node.out_dtype)
    written = replace(target, x=start).written(node, target.filled(node, one), "add")
    divisor = node.emit("maximum", written, one)
    return node.emit("divide" if is_float(node.out_dtype) else "floor_divide", result, divisor)


def _neutral(reduction: str, dtype: str) -> Constant:
    """What a reduction leaves every value as it is with."""
    if reduction in ("add", "mul"):
        return const(np.array(int(reduction == "mul")).astype(dtype))
    if dtype == "bool":
        return const(np.array(reduction == "min"))
    if is_float(dtype):
        return const(np.array(np.inf if reduction == "min" else -np.inf).astype(dtype))
    limits = np.iinfo(dtype)
    return const(np.array(limits.max if reduction == "min" else limits.min, dtype))
