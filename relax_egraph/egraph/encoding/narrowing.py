"""Narrowing: the weights that can be stored in fewer bits within a tolerance.

Weights are measured after all other rules have run, so that they include results of constant
folding, such as a weight with a folded scale.

The error of a weight ``w`` that is stored as ``v`` is the largest ``|w - v| / |w|`` of its
columns.  By Cauchy-Schwarz, ``|x @ w - x @ v|`` is in each column at most ``|x| |w - v|``; so the
error bounds the error of every result relative to ``|x| |w|``.  For a random ``x`` it is the
average error.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from relax_egraph.egraph.encoding.constant_values import Array, ConstantValues
from relax_egraph.egraph.node import LEAF
from relax_egraph.egraph.view import ClassId, View

DTYPES = ("bfloat16", "int8")
"""The dtypes of stored weights: rounded floats, or integers of ±127 times a scale."""

_LEAST = np.float32(1e-30)
"""A lower bound of the largest number of a column, for columns of zeros."""


def stored(w: Array, dtype: str, axis: int) -> Array:
    """The values of `w` once stored as `dtype`, with one scale for each line along `axis`."""
    if dtype == "bfloat16":
        return w.astype(dtype).astype(w.dtype)
    scale = np.maximum(np.abs(w).max(axis, keepdims=True, initial=0), _LEAST) / np.float32(127)
    return np.round(w / scale) * scale


def error(w: Array, dtype: str, axis: int) -> float:
    """The largest error of a column of `w`, along `axis`, relative to the column's norm.

    NaN if a column has NaN or infinite elements.
    """
    with np.errstate(all="ignore"):
        squares = np.square(w, dtype=np.float64).sum(axis)
        lost = np.square(w - stored(w, dtype, axis), dtype=np.float64).sum(axis)
        parts = np.sqrt(lost / np.where(squares == 0, 1, squares))
    return float(parts.max(initial=0))


@dataclass(slots=True)
class Narrowing:
    """A cache of measured errors of constants."""

    _errors: dict[tuple[int, str, int], float] = field(
        default_factory=dict[tuple[int, str, int], float]
    )
    _kept: list[Array] = field(default_factory=list[Array])
    _worst: dict[str, float] = field(default_factory=dict[str, float])

    def of(self, view: View, tolerance: float) -> View:
        """`view`, whose constant weights get the dtypes that are within `tolerance`.

        The view must not have kernels yet.
        """
        classes, weights = dict(view.classes), _Weights(view, self._error)
        for c, axis in _right_operands(view):
            errors = {d: weights.error(c, d, axis) for d in DTYPES}
            within = {d: e for d, e in errors.items() if e <= tolerance}
            for dtype, e in within.items():
                self._worst[dtype] = max(e, self.worst(dtype))
            classes[c] = replace(classes[c], narrow=tuple((d, axis) for d in within))
        return replace(view, classes=classes)

    def worst(self, dtype: str) -> float:
        """The largest error of a weight that is within the tolerance as `dtype`."""
        return self._worst.get(dtype, 0.0)

    def _error(self, w: Array, dtype: str, axis: int) -> float:
        key = (id(w), dtype, axis)
        if key not in self._errors:
            self._errors[key] = error(w, dtype, axis)
            self._kept.append(w)  # so that its id is not reused
        return self._errors[key]


_Measure = Callable[[Array, str, int], float]


class _Weights:
    """The errors of constants of a view; permutations and concatenations have those of operands."""

    def __init__(self, view: View, of_leaf: _Measure) -> None:
        self._values = ConstantValues(view)
        self._of_leaf = of_leaf

    def error(self, c: ClassId, dtype: str, axis: int) -> float:
        """The error of class `c` with one scale along `axis`; infinite if it has no value."""
        node = self._values.made_by(c)
        if node is None:
            return math.inf
        attrs, parts = dict(node.attrs), node.operands
        if node.op == "permute_dims" and isinstance(axes := attrs["axes"], tuple):
            return self.error(parts[0], dtype, int(axes[axis]))
        if node.op == "concat" and attrs["axis"] != axis:
            return max(self.error(part, dtype, axis) for part in parts)
        measure = self._of_leaf if node.op == LEAF else error
        return measure(self._values.of(c), dtype, axis)


def _right_operands(view: View) -> dict[tuple[ClassId, int], None]:
    """Constant right operands of matmul of dtype float32, each with its contracted axis."""
    operands: dict[tuple[ClassId, int], None] = {}
    for node in (n for eclass in view.classes.values() for n in eclass.nodes):
        if node.op == "matmul":
            eclass = view.classes[node.operands[1]]
            info = eclass.struct_info
            if eclass.is_const and info.dtype == "float32" and info.ndim > 1:
                operands[node.operands[1], info.ndim - 2] = None
    return operands
