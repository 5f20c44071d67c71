"""Counts of n-grams of numbers."""

from functools import reduce

import numpy as np
import numpy.typing as npt

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of, info_of
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.expr import Constant, Expr, ShapeExpr

_MOST = 1 << 20
"""The maximal number of counts of a row."""

Array = npt.NDArray[np.int64]
Grams = dict[tuple[int, ...], int]


@converts("TfIdfVectorizer")
def count_grams(node: Node) -> Expr:
    """The counts of n-grams from a pool in each row, or their presence, with weights."""
    pool = _pool(node)
    width = max(node.attrs.integers("ngram_indexes"), default=-1) + 1
    if not 1 <= width <= _MOST or min(node.attrs.integers("ngram_indexes")) < 0:
        raise ModelError(f"its counts are {width}, needs 1 to {_MOST}")
    flat = node.rank(0) < 2
    x = node.cast(node[0], "int64")
    if flat:
        x = node.emit("reshape", x, ShapeExpr((1, dims.product(node.shape(0)))))
    counts = _count_all(node, x, pool, width)
    if flat:
        counts = node.emit("squeeze", counts, axis=0)
    return _weighed(node, node.cast(counts, "float32"), width)


def _pool(node: Node) -> dict[int, Grams]:
    """The n-grams by length, and the index of the count of each."""
    if not node.attrs.has("pool_int64s"):
        raise ModelError("it counts runs of strings")
    items, starts = node.attrs.integers("pool_int64s"), node.attrs.integers("ngram_counts")
    places = iter(node.attrs.integers("ngram_indexes"))
    least, most = (node.attrs.integer(f"{name}_gram_length") for name in ("min", "max"))
    pool: dict[int, Grams] = {}
    for length, start in enumerate(starts, 1):
        part = items[start : starts[length] if length < len(starts) else len(items)]
        runs = [part[k : k + length] for k in range(0, len(part) - length + 1, length)]
        grams = dict(zip(runs, places, strict=False))
        if len(grams) != len(set(runs)):
            raise ModelError(f"its pool has {len(runs)} runs of {length}, not as many indexes")
        if grams and least <= length <= most:
            pool[length] = grams
    return pool


def _count_all(node: Node, x: Expr, pool: dict[int, Grams], width: int) -> Expr:
    """The counts of each row of `x`."""
    batch = (info_of(x).dims or (1,))[0]
    counts = node.emit("zeros", ShapeExpr((batch, width)), dtype="int64")
    steps = range(1, node.attrs.integer("max_skip_count") + 2)
    for length, grams in pool.items():
        runs = np.array(list(grams), np.int64)
        each = [_count(node, x, runs, step) for step in (steps if length > 1 else (1,))]
        total = reduce(lambda a, b: node.emit("add", a, b), each)
        places = Constant(np.array(list(grams.values()), np.int64)[None])
        every = node.emit("broadcast_to", places, ShapeExpr((batch, len(grams))))
        counts = node.emit("scatter_elements", counts, every, total, axis=1, reduction="add")
    return counts


def _count(node: Node, x: Expr, grams: Array, step: int) -> Expr:
    """The count of each of `grams`, taking every `step`-th element, in each row of `x`.

    Rows are padded with a number that is in no n-gram.
    """
    (_, columns), length = info_of(x).dims or (1, 0), grams.shape[1]
    behind, filler = (length - 1) * step, float(int(grams.min()) - 1)
    longer = node.emit("nn.pad", x, pad_width=(0, 0, 0, behind), pad_value=filler)
    matches: Expr | None = None
    for k in range(0, behind + 1, step):
        begin, end = ShapeExpr((k,)), ShapeExpr((dims.add(columns, k),))
        part = node.emit("strided_slice", longer, begin, end, axes=(1,))
        items = Constant(np.ascontiguousarray(grams[:, k // step]))
        same = node.emit("equal", node.emit("expand_dims", part, axis=2), items)
        matches = same if matches is None else node.emit("logical_and", matches, same)
    assert matches is not None
    return node.emit("sum", node.emit("astype", matches, dtype="int64"), axis=1)


def _weighed(node: Node, counts: Expr, width: int) -> Expr:
    """`counts` transformed by the mode of the node."""
    mode = node.attrs.text("mode")
    if mode not in ("TF", "IDF", "TFIDF"):
        raise ModelError(f"its mode is {mode!r}, needs 'TF', 'IDF' or 'TFIDF'")
    zero, one = node.scalar(0, dtype_of(counts)), node.scalar(1, dtype_of(counts))
    if mode == "IDF":
        counts = node.emit("where", node.emit("greater", counts, zero), one, counts)
    if mode == "TF" or not node.attrs.has("weights"):
        return counts
    weights = np.array(node.attrs.numbers("weights"), np.float32)
    if len(weights) != width:
        raise ModelError(f"it has {len(weights)} weights for {width} counts")
    return node.emit("multiply", counts, Constant(weights))
