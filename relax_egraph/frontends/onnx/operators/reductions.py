"""Reductions over axes, arg-reductions, and scans."""

from collections.abc import Callable, Mapping

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of, info_of
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.operators.axes import axes_of, count_of
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.expr import Expr, ShapeExpr
from relax_egraph.ir.struct_info import tensor

_PLAIN: Mapping[str, str] = {
    "ReduceMax": "max",
    "ReduceMean": "mean",
    "ReduceMin": "min",
    "ReduceProd": "prod",
    "ReduceSum": "sum",
}


@converts(*_PLAIN)
def reduction(node: Node) -> Expr:
    """A reduction that is one of our operators."""
    x = node[0]
    if node.op in ("ReduceMax", "ReduceMin") and dtype_of(x) == "bool":
        whole = _reduce(node, _PLAIN[node.op], node.cast(x, "uint8"))
        return node.cast(whole, "bool")
    return _reduce(node, _PLAIN[node.op], x)


@converts("ReduceL1")
def l1(node: Node) -> Expr:
    """``Σ |x|``."""
    return _reduce(node, "sum", node.emit("abs", node[0]))


@converts("ReduceL2")
def l2(node: Node) -> Expr:
    """``√(Σ x²)``; for integers computed in floats."""
    return _in_floats(node, lambda x: node.emit("sqrt", _square_sum(node, x)))


@converts("ReduceSumSquare")
def sum_square(node: Node) -> Expr:
    """``Σ x²``."""
    return _square_sum(node, node[0])


@converts("ReduceLogSum")
def log_sum(node: Node) -> Expr:
    """``ln(Σ x)``."""
    return _in_floats(node, lambda x: node.emit("log", _reduce(node, "sum", x)))


@converts("ReduceLogSumExp")
def log_sum_exp(node: Node) -> Expr:
    """``ln(Σ eˣ)``, relative to the maximum of `x`, so that no exponential overflows."""
    return _in_floats(node, lambda x: _log_sum_exp(node, x))


@converts("ArgMax", "ArgMin")
def argument(node: Node) -> Expr:
    """The first index of an extreme, or the last: the first in reverse order."""
    name, axis = node.op.lower(), node.axis()
    keepdims = bool(node.attrs.integer("keepdims"))
    if not node.attrs.schema_default("select_last_index"):
        return node.emit(name, node[0], axis=axis, keepdims=keepdims)
    last = node.emit(name, node.emit("flip", node[0], axis=axis), axis=axis, keepdims=keepdims)
    extent = ShapeExpr((dims.sub(node.shape(0)[axis], 1),))
    greatest = node.emit("reshape", node.emit("shape_to_tensor", extent), ShapeExpr(()))
    return node.emit("subtract", greatest, last)


@converts("CumSum", "CumProd")
def scan(node: Node) -> Expr:
    """A cumulative sum or product, optionally exclusive, optionally from the end."""
    name, x = node.op.lower(), node[0]
    exclusive, reverse = (bool(node.attrs.integer(n)) for n in ("exclusive", "reverse"))
    axis = node.integers(1)
    if axis is None:
        where = node.emit("reshape", node[1], ShapeExpr(()))
        out = info_of(x)
        flipped = node.emit_late("flip", x, axis=where, out=out) if reverse else x
        scanned = node.emit_late(name, flipped, axis=where, exclusive=exclusive, out=out)
        return node.emit_late("flip", scanned, axis=where, out=out) if reverse else scanned
    flipped = node.emit("flip", x, axis=axis[0]) if reverse else x
    scanned = node.emit(name, flipped, axis=axis[0], exclusive=exclusive)
    return node.emit("flip", scanned, axis=axis[0]) if reverse else scanned


@converts("TopK")
def topk(node: Node) -> tuple[Expr, ...]:
    """The greatest or least elements along an axis, and their indices."""
    axis = node.attrs.integer("axis")
    largest = bool(node.attrs.schema_default("largest") in (None, 1))
    known = (node.attrs.integer("k"),) if node.attrs.has("k") else node.integers(1)
    settings = {"axis": axis, "largest": largest, "dtype": "int64"}
    if known is not None and known[0] > 0:
        return node.fields(node.emit("topk", node[0], k=known[0], **settings))
    if known is not None:
        raise ModelError(f"k is {known[0]}, needs 1 or more")
    count = node.extents(1, 1)
    if count is None:
        count = node.extents_of(node.emit("reshape", node[1], ShapeExpr((1,))), 1) or ()
    begin = ShapeExpr((0,))
    sorted_ = node.fields(node.emit("topk", node[0], k=0, **settings))  # all elements
    place = (node.axis(),)
    return tuple(
        node.emit("strided_slice", x, begin, ShapeExpr(count), axes=place) for x in sorted_
    )


def _in_floats(node: Node, function: Callable[[Expr], Expr]) -> Expr:
    """`function` of the operand in floats, in the operand's dtype."""
    dtype = node.dtype(0)
    return (
        function(node[0])
        if is_float(dtype)
        else node.cast(function(node.cast(node[0], "float64")), dtype)
    )


def _square_sum(node: Node, x: Expr) -> Expr:
    return _reduce(node, "sum", node.emit("square", x))


def _log_sum_exp(node: Node, x: Expr) -> Expr:
    dtype = dtype_of(x)
    zero = node.scalar(0, dtype)
    greatest = _reduce(node, "max", x, keepdims=True)
    finite = node.emit("where", node.emit("isfinite", greatest), greatest, zero)
    above = node.emit("exp", node.emit("subtract", x, finite))
    logarithm = node.emit("log", _reduce(node, "sum", above))
    own = _reduce(node, "max", x)
    return node.emit("add", logarithm, node.emit("where", node.emit("isfinite", own), own, zero))


def _reduce(node: Node, name: str, x: Expr, *, keepdims: bool | None = None) -> Expr:
    """`x` reduced over the axes of `node`, by default over all."""
    kept = bool(node.attrs.integer("keepdims")) if keepdims is None else keepdims
    axes = axes_of(node, 1)
    if axes == () or axes is None:
        if node.attrs.schema_default("noop_with_empty_axes"):
            return x
        return node.emit(name, x, axis=None, keepdims=kept)
    if isinstance(axes, tuple):
        return node.emit(name, x, axis=axes, keepdims=kept)
    rank, count = info_of(x).ndim, count_of(node, 1)
    out_rank = rank if kept else rank - count if count is not None and rank >= 0 else -1
    out = tensor(None, dtype_of(x), out_rank)
    return node.emit_late(name, x, axis=axes, keepdims=kept, out=out)
