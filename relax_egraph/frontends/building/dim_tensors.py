"""Dimensions as tensors."""

from collections.abc import Sequence
from typing import cast

import numpy as np
import sympy

from relax_egraph.frontends.building.builder import Builder
from relax_egraph.frontends.building.elements import Elements
from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import BlockBuilder, call
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Constant, Expr, ShapeExpr, Tuple


def vector_of(bb: BlockBuilder, values: Sequence[Dim]) -> Expr:
    """The tensor of rank 1 of `values` in int64; nonnegative ones go through a shape."""
    if all(dims.prove_ge(value, 0) for value in values):
        return bb.emit(call("shape_to_tensor", ShapeExpr(tuple(values))))
    parts = [_single(bb, value) for value in values]
    return parts[0] if len(parts) == 1 else bb.emit(call("concat", Tuple(tuple(parts)), axis=0))


def tensor_of(bb: BlockBuilder, elements: Elements) -> Expr:
    """The tensor of `elements`."""
    concrete = elements.concrete
    if concrete is not None:
        return Constant(concrete)
    flat = vector_of(bb, elements.dims)
    if elements.dtype != "int64":
        flat = bb.emit(call("astype", flat, dtype=elements.dtype))
    shape = elements.array.shape
    return flat if len(shape) == 1 else bb.emit(call("reshape", flat, ShapeExpr(shape)))


def _single(bb: BlockBuilder, value: Dim) -> Expr:
    if isinstance(value, int):
        return Constant(np.array([value]))
    if dims.prove_ge(value, 0):
        return bb.emit(call("shape_to_tensor", ShapeExpr((value,))))
    less, more = sides(value)
    minuend = bb.emit(call("shape_to_tensor", ShapeExpr((more,))))
    subtrahend = bb.emit(call("shape_to_tensor", ShapeExpr((less,))))
    return bb.emit(call("subtract", minuend, subtrahend))


def sides(value: Dim) -> tuple[Dim, Dim]:
    """What is subtracted in `value`, and from what: ``(m + 1, 2 * n)`` for ``2 * n - m - 1``."""
    if isinstance(value, int):
        return max(-value, 0), max(value, 0)
    less: Dim = 0
    for term in cast(list[sympy.Expr], value.as_ordered_terms()):
        if term.could_extract_minus_sign():
            less = dims.sub(less, term)
    return less, dims.add(value, less)


def number_of(b: Builder, extent: Dim, dtype: str) -> Expr:
    """`extent`, which is nonnegative, as a tensor of rank 0."""
    if isinstance(extent, int):
        return b.scalar(extent, dtype)
    vector = b.emit("shape_to_tensor", ShapeExpr((extent,)))
    return b.cast(b.emit("reshape", vector, ShapeExpr(())), dtype)
