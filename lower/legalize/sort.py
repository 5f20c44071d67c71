"""Sorting along an axis, row by row: stable, with NaN last."""

from collections.abc import Callable, Mapping, Sequence

from relax_egraph.ir import dims
from relax_egraph.lower.legalize.elementwise import Legalize
from relax_egraph.lower.legalize.loops import around, loop_function
from relax_egraph.lower.legalize.ordering import Row, first_few, loop, merged
from relax_egraph.tir import te
from relax_egraph.tir.expr import Buffer, TirExpr, TirVar, from_dim
from relax_egraph.tir.stmt import PrimFunc, Store, TirBlock, seq

FEW = 256
"""The maximal number of elements that are selected while the row is read; for more it is sorted."""


def sort(x: te.Tensor, *, axis: int, descending: bool) -> PrimFunc:
    """The elements of each row in order."""
    out = Buffer("sort", x.shape, x.dtype)
    return _ordered(x, axis, descending, (out,), lambda element, place: (element,))


def argsort(data: te.Tensor, *, axis: int, descending: bool, dtype: str) -> PrimFunc:
    """The positions of the elements of each row in order."""
    out = Buffer("argsort", data.shape, dtype)
    return _ordered(data, axis, descending, (out,), lambda element, place: (place,))


def topk(
    data: te.Tensor, *, k: int, axis: int, ret_type: str, largest: bool, dtype: str
) -> PrimFunc:
    """The first `k` elements of each row in order, and their positions."""
    place = axis % len(data.shape)
    extent = data.shape[place]
    count = dims.minimum(extent, k) if k >= 1 else extent
    shape = (*data.shape[:place], count, *data.shape[place + 1 :])
    values, indices = Buffer("values", shape, data.dtype), Buffer("indices", shape, dtype)
    outputs = {"values": (values,), "indices": (indices,), "both": (values, indices)}[ret_type]

    def results(element: TirExpr, place: TirExpr) -> Sequence[TirExpr]:
        return {"values": (element,), "indices": (place,), "both": (element, place)}[ret_type]

    return _ordered(data, axis, largest, outputs, results, k)


def _ordered(
    data: te.Tensor,
    axis: int,
    descending: bool,
    outputs: tuple[Buffer, ...],
    results: Callable[[TirExpr, TirExpr], Sequence[TirExpr]],
    k: int = 0,
) -> PrimFunc:
    """The function of `outputs`, which `results` computes from elements and their positions.

    If `k` is positive, it is the maximal number of elements of each row.
    """
    source = Buffer(data.name, data.shape, data.dtype)
    place = axis % len(data.shape)
    others = [TirVar(f"i{n}") for n in range(len(data.shape) - 1)]

    def at(number: TirExpr) -> tuple[TirExpr, ...]:
        return (*others[:place], number, *others[place:])

    row = Row(data.shape[place], lambda number: source[at(number)], descending)
    order = first_few(row, k) if 1 <= k <= FEW else merged(row)

    def stored(rank: TirVar) -> Sequence[Store]:
        number = order.places(rank)
        values = results(source[at(number)], number)
        return [
            Store(o, at(rank), te.cast(v, o.dtype)) for o, v in zip(outputs, values, strict=True)
        ]

    count = from_dim(outputs[0].shape[place])
    body = seq(order.body, loop("r", count, lambda rank: seq(*stored(rank))))
    block = TirBlock("ordered", (), body, allocs=order.buffers)
    shape = [extent for n, extent in enumerate(data.shape) if n != place]
    whole = around([*zip(others, shape, strict=True)], block, "parallel")
    return loop_function((source, *outputs), whole, len(outputs))


LEGALIZE: Mapping[str, Legalize] = {"sort": sort, "argsort": argsort, "topk": topk}
