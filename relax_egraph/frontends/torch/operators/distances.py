"""Distances between the rows of matrices, and products of three tensors."""

import math

import numpy as np

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.expr import Expr, Tuple, const


@converts("aten._cdist_forward.default")
def distances(node: Node) -> Expr:
    """The norm of the difference of each row of `x1` and each of `x2`."""
    rows = node.emit("expand_dims", node["x1"], axis=-2)
    others = node.emit("expand_dims", node["x2"], axis=-3)
    return _norm(node, node.emit("subtract", rows, others))


@converts("aten._pdist_forward.default")
def distances_of_pairs(node: Node) -> Expr:
    """The norm of the difference of each pair of rows, the first row's pairs first."""
    (count, _) = node.shape("self")
    if not isinstance(count, int):
        raise ModelError(f"the pairs of {dims.text(count)} rows are known only at run time")
    rows, others = (
        node.emit("take", node["self"], const(places), axis=0)
        for places in np.triu_indices(count, 1)
    )
    return _norm(node, node.emit("subtract", rows, others))


def _norm(node: Node, x: Expr) -> Expr:
    """``(Σ |x|^p)^(1/p)`` along the last axis."""
    p, dtype = float(node.number("p")), dtype_of(x)
    if p == 2:
        return node.emit("sqrt", node.emit("sum", node.emit("square", x), axis=-1))
    if p == 0:
        nonzero = node.emit("not_equal", x, node.scalar(0, dtype))
        return node.emit("sum", node.cast(nonzero, dtype), axis=-1)
    x = node.emit("abs", x)
    if math.isinf(p):
        zero = node.emit("zeros_like", node.emit("sum", x, axis=-1))
        empty = node.shape("self" if "self" in node.arguments else "x1")[-1] == 0
        return zero if empty else node.emit("max", x, axis=-1)
    if p == 1:
        return node.emit("sum", x, axis=-1)
    total = node.emit("sum", node.emit("power", x, node.scalar(p, dtype)), axis=-1)
    return node.emit("power", total, node.scalar(1 / p, dtype))


@converts("aten._cdist_backward.default")
def distance_gradient(node: Node) -> Expr:
    """The gradient of the rows of `x1`; 0 of a distance that is 0."""
    emit, dtype, p = node.emit, node.out_dtype, float(node.number("p"))
    grad, x1, x2, distance = (node[name] for name in ("grad", "x1", "x2", "cdist"))
    zero = node.scalar(0, dtype)
    if p == 0:
        return emit("zeros_like", x1)
    is_same = emit("equal", distance, zero)
    if p == 2:
        shares = emit("where", is_same, zero, emit("divide", grad, distance))
        total = emit("sum", shares, axis=-1, keepdims=True)
        return emit("subtract", emit("multiply", x1, total), emit("matmul", shares, x2))
    rows, others = emit("expand_dims", x1, axis=-2), emit("expand_dims", x2, axis=-3)
    apart = emit("subtract", rows, others)
    side, size = emit("sign", apart), emit("abs", apart)
    if math.isinf(p):
        is_greatest = emit("equal", size, emit("expand_dims", distance, axis=-1))
        side = emit("where", is_greatest, side, zero)
    elif p != 1:
        ratio = emit("divide", size, emit("expand_dims", distance, axis=-1))
        powers = emit("power", ratio, node.scalar(p - 1, dtype))
        is_none = emit("logical_or", emit("equal", size, zero), emit("isnan", ratio))
        side = emit("where", is_none, zero, emit("multiply", side, powers))
    whole = emit("multiply", side, emit("expand_dims", grad, axis=-1))
    return emit("sum", whole, axis=-2)


@converts("aten._trilinear.default")
def trilinear(node: Node) -> Expr:
    """``Σ i1 · i2 · i3`` over some axes; each operand lacks the axes where it is the same."""
    ranks = [node.rank(f"i{k}") + len(node.integers(f"expand{k}")) for k in (1, 2, 3)]
    letters = "abcdefghijklmnopqrstuvwxyz"[: ranks[0]]
    names: list[str] = []
    for k in (1, 2, 3):
        absent = node.integers(f"expand{k}")
        names.append("".join(x for axis, x in enumerate(letters) if axis not in absent))
    summed = {axis % ranks[0] for axis in node.integers("sumdim")}
    out = "".join(x for axis, x in enumerate(letters) if axis not in summed)
    operands = Tuple(tuple(node[f"i{k}"] for k in (1, 2, 3)))
    return node.emit("einsum", operands, subscripts=f"{','.join(names)}->{out}")
