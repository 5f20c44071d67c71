"""Decision trees as tables: all samples descend all trees together, level by level."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.ir.expr import Constant, Expr

Array = npt.NDArray[Any]

MODES: Mapping[str, str] = {
    "LEQ": "less_equal",
    "LT": "less",
    "GTE": "greater_equal",
    "GT": "greater",
    "EQ": "equal",
    "NEQ": "not_equal",
    "MEMBER": "",
}
"""Comparisons of a feature with the number of a node, or membership in its set."""

LEAF = "LEAF"

_DEEPEST = 64
"""The maximal number of levels."""

_MOST_TARGETS = 1 << 16
"""The maximal number of targets."""


@dataclass(frozen=True, slots=True)
class Forest:
    """The nodes of all trees in one table; the children of a leaf are the leaf itself.

    `sets` has a row for each node, with the members of its set, padded with NaN.  `tracks` marks
    nodes where a NaN feature counts as if the comparison held.
    """

    features: Array
    splits: Array
    modes: Sequence[str]
    if_true: Array
    if_false: Array
    tracks: Array
    roots: Array
    sets: Array | None = None

    @property
    def depth(self) -> int:
        """The number of levels below the roots; raises `ModelError` for a cycle."""
        inner = np.array([mode != LEAF for mode in self.modes], bool)
        level, depth = np.unique(self.roots), 0
        while inner[level].any():
            depth += 1
            if depth > _DEEPEST:
                raise ModelError(f"its trees have more than {_DEEPEST} levels")
            level = level[inner[level]]
            level = np.unique(np.concatenate([self.if_true[level], self.if_false[level]]))
        return depth


def checked(forest: Forest, features: int | None) -> Forest:
    """`forest`, validated: all references exist, to `features` features if that is known."""
    count = len(forest.modes)
    tables = (forest.features, forest.splits, forest.if_true, forest.if_false, forest.tracks)
    if any(len(table) != count for table in tables):
        raise ModelError(f"its tables of nodes have {[len(t) for t in tables]} rows, need {count}")
    for table in (forest.if_true, forest.if_false, forest.roots):
        if table.size and not 0 <= table.min() <= table.max() < count:
            raise ModelError("a tree refers to an absent node")
    last = forest.features.max(initial=0)
    if forest.features.min(initial=0) < 0 or (features is not None and last >= features):
        raise ModelError(f"its trees ask for feature {last}, there are {features}")
    if unknown := set(forest.modes) - {*MODES, LEAF}:
        raise ModelError(f"its trees have nodes of the mode {min(unknown)!r}")
    return forest


def leaves(node: Node, x: Expr, forest: Forest) -> Expr:
    """The leaf of each sample in each tree, as (sample, tree)."""
    start = node.emit("take", x, node.scalar(0, "int64"), axis=1)
    begin = node.emit("zeros_like", node.emit("expand_dims", start, axis=1), dtype="int64")
    place = node.emit("add", begin, Constant(forest.roots[None].astype(np.int64)))
    for _ in range(forest.depth):
        holds = _holds(node, x, place, forest)
        yes, no = (_of(node, table, place) for table in (forest.if_true, forest.if_false))
        place = node.emit("where", holds, yes, no)
    return place


def _holds(node: Node, x: Expr, place: Expr, forest: Forest) -> Expr:
    """Whether the comparison of the node at `place` holds."""
    dtype = dtype_of(x)
    value = node.emit("gather_elements", x, _of(node, forest.features, place), axis=1)
    split = _of(node, forest.splits.astype(dtype), place)
    modes = [mode for mode in MODES if mode in forest.modes]
    holds = _compare(node, modes[0], value, split, place, forest)
    for mode in modes[1:]:
        is_it = _of(node, np.array([m == mode for m in forest.modes]), place)
        other = _compare(node, mode, value, split, place, forest)
        holds = node.emit("where", is_it, other, holds)
    if not forest.tracks.any():
        return holds
    missing = node.emit("logical_and", node.emit("isnan", value), _of(node, forest.tracks, place))
    return node.emit("logical_or", holds, missing)


def _compare(node: Node, mode: str, value: Expr, split: Expr, place: Expr, forest: Forest) -> Expr:
    if mode != "MEMBER":
        return node.emit(MODES[mode], value, split)
    if forest.sets is None:
        raise ModelError("it has no members of the sets of its nodes")
    members = _of(node, forest.sets.astype(dtype_of(value)), place)
    same = node.emit("equal", node.emit("expand_dims", value, axis=2), members)
    return node.cast(node.emit("max", node.cast(same, "uint8"), axis=2), "bool")


def _of(node: Node, table: Array, place: Expr) -> Expr:
    """The rows of `table` at `place`."""
    return node.emit("take", Constant(np.ascontiguousarray(table)), place, axis=0)


def collect(node: Node, place: Expr, weights: Array, how: str) -> Expr:
    """The aggregate of the leaf weights at `place` over all trees: sum, mean, minimum or maximum.

    `weights` has a row for each node, with a number for each target.
    """
    each = _of(node, weights, place)
    names = {"SUM": "sum", "AVERAGE": "mean", "MIN": "min", "MAX": "max"}
    if how not in names:
        raise ModelError(f"its aggregate_function is {how!r}, needs one of {', '.join(names)}")
    return node.emit(names[how], each, axis=1)


def blank(rows: int, targets: int, how: str, dtype: Any) -> Array:
    """Neutral weights of the aggregate `how`, for `rows` nodes and `targets` targets."""
    if not 1 <= targets <= _MOST_TARGETS:
        raise ModelError(f"it has {targets} targets, needs 1 to {_MOST_TARGETS}")
    limits = np.finfo(dtype)
    neutral = {"MIN": limits.max, "MAX": limits.min}.get(how, 0.0)
    return np.full((rows, targets), neutral, dtype)


def put(weights: Array, row: int, target: int, weight: float, how: str) -> None:
    """Combine `weight` with the weight of a leaf for `target`."""
    if not (0 <= target < weights.shape[1] and 0 <= row < weights.shape[0]):
        raise ModelError(f"a leaf has a weight for target {target}, which does not exist")
    joins = {"MIN": min, "MAX": max}
    old = weights[row, target]
    weights[row, target] = joins[how](old, weight) if how in joins else old + weight
