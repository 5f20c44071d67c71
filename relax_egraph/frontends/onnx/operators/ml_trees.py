"""Ensembles of decision trees of the domain ``ai.onnx.ml``."""

from collections.abc import Sequence

import numpy as np

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import info_of
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.operators.ml_forest import (
    LEAF,
    MODES,
    Array,
    Forest,
    blank,
    checked,
    collect,
    leaves,
    put,
)
from relax_egraph.frontends.onnx.operators.ml_scores import (
    DOMAIN,
    POST_TRANSFORMS,
    classes_of,
    labels_of,
    transformed,
)
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.expr import Constant, Expr, Tuple

_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")


@converts("TreeEnsemble", domain=DOMAIN)
def tree_ensemble(node: Node) -> Expr:
    """The leaf weights of each sample, aggregated over all trees."""
    x, attrs = node[0], node.attrs
    store = node.frame.model.store
    splits = store.array(attrs.tensor("nodes_splits"))
    weights = store.array(attrs.tensor("leaf_weights"))
    modes = _modes(store.array(attrs.tensor("nodes_modes")))
    inner, outer = len(modes), len(weights)
    itself = np.arange(inner, inner + outer)

    def children(side: str) -> Array:
        below = np.array(attrs.integers(f"nodes_{side}nodeids"), np.int64)
        is_leaf = np.array(attrs.integers(f"nodes_{side}leafs"), bool)
        if below.shape != is_leaf.shape:
            raise ModelError(f"its nodes_{side}nodeids and nodes_{side}leafs differ in length")
        return np.concatenate([below + inner * is_leaf, itself])

    forest = Forest(
        np.pad(np.array(attrs.integers("nodes_featureids"), np.int64), (0, outer)),
        np.pad(splits, (0, outer)),
        (*modes, *[LEAF] * outer),
        children("true"),
        children("false"),
        np.pad(_tracks(node, inner), (0, outer)),
        np.array(attrs.integers("tree_roots"), np.int64),
        _sets(node, modes, outer),
    )
    how = _named(_AGGREGATES, attrs.integer("aggregate_function"), "aggregate_function")
    targets = attrs.integer("n_targets")
    table = blank(inner + outer, targets, how, weights.dtype)
    for leaf, target in enumerate(attrs.integers("leaf_targetids")):
        put(table, inner + leaf, target, weights[leaf], how)
    place = leaves(node, x, checked(forest, _features(x)))
    post = _named(POST_TRANSFORMS, attrs.integer("post_transform"), "post_transform")
    return transformed(node, collect(node, place, table, how), post)


@converts("TreeEnsembleRegressor", domain=DOMAIN)
def tree_regressor(node: Node) -> Expr:
    """The same for explicitly numbered trees and nodes, with base values."""
    how = node.attrs.text("aggregate_function")
    out = _collected(node, "target", node.attrs.integer("n_targets"), how)
    return transformed(node, out, node.attrs.text("post_transform"))


@converts("TreeEnsembleClassifier", domain=DOMAIN)
def tree_classifier(node: Node) -> tuple[Expr, ...]:
    """The label of the greatest sum of weights, and the sums; a single class competes with 1."""
    classes = classes_of(node, "classlabels_int64s")
    ids, post = set(node.attrs.integers("class_ids")), node.attrs.text("post_transform")
    scores = _collected(node, "class", len(classes), "SUM")
    if len(ids) == 1 and len(classes) == 2:
        own = node.emit("take", scores, node.scalar(min(ids), "int64"), axis=1)
        second = node.emit("expand_dims", own, axis=1)
        if post == "NONE":
            first = node.emit("subtract", node.scalar(1, "float32"), second)
        else:
            first = node.emit("negative", second)
        scores = node.emit("concat", Tuple((first, second)), axis=1)
    scores = transformed(node, scores, post)
    return labels_of(node, scores, classes), scores


def _collected(node: Node, kind: str, targets: int, how: str) -> Expr:
    """The aggregated weights from the attributes that begin with `kind`, in float32."""
    attrs, x = node.attrs, node[0]
    x = x if is_float(node.dtype(0)) else node.cast(x, "float32")
    forest, rows = _numbered(node)
    weights = blank(len(forest.modes), targets, how, np.float32)
    columns = (attrs.integers(f"{kind}_{name}") for name in ("treeids", "nodeids", "ids"))
    each = _floats(node, f"{kind}_weights").tolist()
    try:
        for tree, number, target, weight in zip(*columns, each, strict=True):
            put(weights, rows[tree, number], target, weight, how)
    except (KeyError, ValueError):
        raise ModelError(f"its weights of a {kind} do not fit its trees") from None
    out = collect(node, leaves(node, x, checked(forest, _features(x))), weights, how)
    if not any(attrs.has(name) for name in ("base_values", "base_values_as_tensor")):
        return out
    return node.emit("add", out, Constant(_floats(node, "base_values").astype(np.float32)))


def _numbered(node: Node) -> tuple[Forest, dict[tuple[int, int], int]]:
    """The forest, and the row of each node by its tree and its number."""
    attrs = node.attrs
    trees, numbers = attrs.integers("nodes_treeids"), attrs.integers("nodes_nodeids")
    modes = [mode.removeprefix("BRANCH_") for mode in attrs.texts("nodes_modes")]
    rows = {key: row for row, key in enumerate(zip(trees, numbers, strict=False))}

    def children(name: str) -> Array:
        below = zip(trees, attrs.integers(name), modes, strict=False)
        try:
            targets = [
                row if mode == LEAF else rows[tree, number]
                for row, (tree, number, mode) in enumerate(below)
            ]
        except KeyError:
            raise ModelError("a tree refers to an absent node") from None
        return np.array(targets, np.int64)

    roots: dict[int, int] = {}
    for row, tree in enumerate(trees):
        roots.setdefault(tree, row)
    forest = Forest(
        np.array(attrs.integers("nodes_featureids"), np.int64),
        _floats(node, "nodes_values"),
        modes,
        children("nodes_truenodeids"),
        children("nodes_falsenodeids"),
        _tracks(node, len(modes)),
        np.array(list(roots.values()), np.int64),
    )
    return forest, rows


def _floats(node: Node, name: str) -> Array:
    """A float attribute, or the tensor in the attribute with the longer name."""
    if node.attrs.has(f"{name}_as_tensor"):
        return node.frame.model.store.array(node.attrs.tensor(f"{name}_as_tensor")).reshape(-1)
    return np.array(node.attrs.numbers(name), np.float32)


def _tracks(node: Node, count: int) -> Array:
    name = "nodes_missing_value_tracks_true"
    values = node.attrs.integers(name) if node.attrs.has(name) else ()
    return np.array(values or [0] * count, bool)


def _features(x: Expr) -> int | None:
    """The number of features, if it is known."""
    shape = info_of(x).dims
    if shape is None or len(shape) != 2:
        raise ModelError(f"its operand is {info_of(x)}, needs rank 2")
    return shape[1] if isinstance(shape[1], int) else None


def _modes(numbers: Array) -> Sequence[str]:
    return [_named(tuple(MODES), int(number), "mode") for number in numbers]


def _named(names: Sequence[str], number: int, what: str) -> str:
    if not 0 <= number < len(names):
        raise ModelError(f"its {what} is {number}, needs 0 to {len(names) - 1}")
    return names[number]


def _sets(node: Node, modes: Sequence[str], outer: int) -> Array | None:
    """A row of members for each node; in the attribute, NaN ends a set."""
    if not node.attrs.has("membership_values"):
        return None
    values = node.frame.model.store.array(node.attrs.tensor("membership_values"))
    ends = np.flatnonzero(np.isnan(values))
    sets = np.split(values, ends + 1)[: len(ends)]
    owners = [row for row, mode in enumerate(modes) if mode == "MEMBER"]
    if len(owners) != len(sets):
        raise ModelError(f"it has {len(sets)} sets for {len(owners)} nodes")
    rows = np.full((len(modes) + outer, max(map(len, sets), default=1)), np.nan, values.dtype)
    for row, members in zip(owners, sets, strict=True):
        rows[row, : len(members)] = members
    return rows
