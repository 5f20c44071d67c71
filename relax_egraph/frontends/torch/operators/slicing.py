"""Slices of tensors, parts of them, and writes to slices."""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import torch

from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, PrimValue, ShapeExpr, const
from relax_egraph.ir.ops.slices import BEYOND


@converts("aten.slice.Tensor")
def slice_(node: Node) -> Expr:
    """``self[…, start:end:step, …]``."""
    axis = node.axis("dim", node.rank("self"))
    if any(isinstance(node.arguments[name], torch.SymInt) for name in ("start", "end")):
        return _between_numbers(node, axis)
    start, end = _bounds(node)
    step = node.integer("step")
    is_all = start == 0 and step == 1 and isinstance(end, int) and end >= BEYOND
    return node["self"] if is_all else _sliced(node, axis, start, end, step)


@converts("aten.select.int")
def select(node: Node) -> Expr:
    """``self[…, index, …]``, without the axis."""
    axis = node.axis("dim", node.rank("self"))
    place = _place(node, axis)
    part = _sliced(node, axis, place, dims.add(place, 1))
    return node.emit("squeeze", part, axis=(axis,))


@converts("aten.split_with_sizes.default")
def split_with_sizes(node: Node) -> Sequence[Expr]:
    """Parts along an axis, one behind the other."""
    sizes, axis = node.sizes("split_sizes"), node.axis("dim", node.rank("self"))
    if len(sizes) == 1:
        return [node["self"]]
    ends = list(accumulate(sizes, dims.add))
    known = [end for end in ends[:-1] if isinstance(end, int)]
    if len(known) == len(ends) - 1:
        parts = node.emit("split", node["self"], indices_or_sections=tuple(known), axis=axis)
        return node.fields(parts)
    bounds = zip([0, *ends], ends, strict=False)
    return [_sliced(node, axis, start, end) for start, end in bounds]


@converts("aten.slice_scatter.default")
def slice_scatter(node: Node) -> Expr:
    """The operand with a slice of it written."""
    axis = node.axis("dim", node.rank("self"))
    start, end = _bounds(node)
    return _written(node, node["src"], axis, start, end, node.integer("step"))


@converts("aten.select_scatter.default")
def select_scatter(node: Node) -> Expr:
    """The operand with the elements at an index of an axis written."""
    axis = node.axis("dim", node.rank("self"))
    place = _place(node, axis)
    source = node.emit("expand_dims", node["src"], axis=(axis,))
    return _written(node, source, axis, place, dims.add(place, 1))


def _between_numbers(node: Node, axis: int) -> Expr:
    """The slice between numbers that may be negative."""
    rank, step = node.rank("self"), node.integer("step")
    begin, end, steps = [0] * rank, [BEYOND] * rank, [1] * rank
    steps[axis] = step
    here = const(np.arange(rank) == axis)
    bounds: list[Expr] = []
    for name, others in (("start", begin), ("end", end)):
        every = const(np.array(others))
        number = node.operand(name, "int64") if node.has(name) else every
        bounds.append(node.emit("where", here, number, every))
    return node.emit("dynamic_strided_slice", node["self"], *bounds, const(np.array(steps)))


def _bounds(node: Node) -> tuple[Dim, Dim]:
    start = node.dim("start") if node.has("start") else 0
    end = node.dim("end") if node.has("end") else BEYOND
    return start, BEYOND if isinstance(end, int) and end >= BEYOND else end


def _place(node: Node, axis: int) -> Dim:
    """The argument `index`, counted from the front."""
    index = node.dim("index")
    is_negative = dims.prove_ge(-1, index)
    return dims.add(index, node.shape("self")[axis]) if is_negative else index


def _sliced(node: Node, axis: int, start: Dim, end: Dim, step: int = 1) -> Expr:
    begin, stop = ShapeExpr((start,)), ShapeExpr((end,))
    return node.emit("strided_slice", node["self"], begin, stop, axes=(axis,), strides=(step,))


def _written(node: Node, source: Expr, axis: int, start: Dim, end: Dim, step: int = 1) -> Expr:
    numbers = map(PrimValue, (start, end, step))
    return node.emit(
        "slice_scatter", node["self"], node.cast(source, node.out_dtype), *numbers, axis=axis
    )
