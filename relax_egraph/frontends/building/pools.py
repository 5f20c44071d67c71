"""Pools over windows: their attributes, and the places of greatest elements."""

import itertools

import numpy as np

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import Builder, dtype_of
from relax_egraph.frontends.building.heads import shape_of
from relax_egraph.frontends.building.windows import SPATIAL, Windows
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.expr import Attr, Expr, PrimValue, ShapeExpr
from relax_egraph.ir.ops.pooling import pool as pool_of
from relax_egraph.ir.struct_info import Shape


def pool_attributes(moves: Windows, *, ceil: bool) -> dict[str, Attr]:
    """The attributes of a pool operator of batches of images, channels first."""
    return {
        "pool_size": moves.sizes,
        "strides": moves.strides,
        "padding": moves.padding,
        "dilation": moves.dilations,
        "ceil_mode": ceil,
        "layout": f"NC{SPATIAL[moves.rank]}",
    }


def positions(shape: Shape, moves: Windows, *, ceil: bool) -> Shape:
    """The number of windows along each spatial axis of an operand of `shape`."""
    attributes = pool_of(
        "a pool",
        moves.rank,
        pool_size=moves.sizes,
        strides=moves.strides,
        padding=moves.padding,
        dilation=moves.dilations,
        ceil_mode=ceil,
        count_include_pad=False,
        layout=f"NC{SPATIAL[moves.rank]}",
        out_layout=None,
    )
    return attributes.shape(shape)[2:]


def pad_widths(shape: Shape, moves: Windows, *, ceil: bool) -> tuple[int, ...]:
    """The padding of each axis of `shape` so that all windows lie within the padded operand."""
    widths = [0, 0, 0, 0]
    overhangs = _overhang(shape, moves, ceil=ceil)
    for before, after, over in zip(moves.before, moves.after, overhangs, strict=True):
        widths += [before, after + over]
    return tuple(widths)


def _overhang(shape: Shape, moves: Windows, *, ceil: bool) -> list[int]:
    """The excess of the last window of each axis over the padded operand."""
    result: list[int] = []
    counts = positions(shape, moves, ceil=ceil)
    for k, (extent, count) in enumerate(zip(shape[2:], counts, strict=True)):
        end = dims.add(dims.mul(dims.sub(count, 1), moves.strides[k]), moves.reach[k])
        room = dims.add(extent, moves.before[k] + moves.after[k])
        over = dims.maximum(dims.sub(end, room), 0)
        if not isinstance(over, int):
            if ceil:
                raise ModelError("where its last window ends is known only at run time")
            over = 0
        result.append(over)
    return result


def max_with_indices(
    b: Builder, x: Expr, moves: Windows, indices: Expr, *, ceil: bool
) -> tuple[Expr, Expr]:
    """The maximum of each window, and its element of `indices`, by the taps of the window.

    `indices` broadcast to `x`.  The first of equal elements is selected, but the last NaN if
    there is one.
    """
    shape, dtype = shape_of(x), dtype_of(x)
    axes = tuple(range(2, 2 + moves.rank))
    widths = pad_widths(shape, moves, ceil=ceil)
    least = -np.inf if is_float(dtype) else float(np.iinfo(dtype).min)
    data = b.emit("nn.pad", x, pad_width=widths, pad_value=least)
    places = b.emit("nn.pad", indices, pad_width=widths)
    counts = positions(shape, moves, ceil=ceil)
    spans = [
        (count - 1) * stride + 1 if isinstance(count, int) else dims.sub(extent, reach - 1)
        for count, stride, extent, reach in zip(
            counts, moves.strides, shape_of(data)[2:], moves.reach, strict=True
        )
    ]
    best: tuple[Expr, Expr] | None = None
    for tap in itertools.product(*map(range, moves.sizes)):
        begin = tuple(t * d for t, d in zip(tap, moves.dilations, strict=True))
        end = tuple(map(dims.add, begin, spans))
        value, place = (
            b.emit(
                "strided_slice",
                e,
                ShapeExpr(begin),
                ShapeExpr(end),
                axes=axes,
                strides=moves.strides,
                assume_inbound=True,
            )
            for e in (data, places)
        )
        if best is None:
            best = value, place
            continue
        is_greater = b.emit("greater", value, best[0])
        if is_float(dtype):
            is_greater = b.emit("logical_or", is_greater, b.emit("isnan", value))
        best = (
            b.emit("where", is_greater, value, best[0]),
            b.emit("where", is_greater, place, best[1]),
        )
    assert best is not None
    values, places = best
    whole = ShapeExpr(shape_of(values))
    is_whole = shape_of(places) == shape_of(values)
    return values, places if is_whole else b.emit("broadcast_to", places, whole)


def row_major(b: Builder, shape: tuple[Dim, ...]) -> Expr:
    """The index of each element of a tensor of `shape`, in row-major order."""
    along = b.emit("arange", PrimValue(dims.product(shape)), dtype="int64")
    return b.emit("reshape", along, ShapeExpr(shape))
