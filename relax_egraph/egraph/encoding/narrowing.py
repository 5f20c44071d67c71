"""Which constants of a program may be stored in fewer bits, within a tolerance.

It is asked when all other rules are done: weights are then what these made of constants, too, such
as one that a scale is folded into.

A weight ``w`` that is stored as ``v`` changes a product by ``|x @ w - x @ v|``, which in each
column is at most ``|x|`` times ``|w - v|``, the norms of a row and of a column.  The error of a
weight is the largest ``|w - v| / |w|`` of its columns: so much of ``|x| |w|`` is what no result
is off by more, and of a random ``x`` what results are off by on average.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from relax_egraph.egraph.encoding.constant_values import Array, ConstantValues
from relax_egraph.egraph.node import LEAF
from relax_egraph.egraph.view import ClassId, View

DTYPES = ("bfloat16", "int8")
"""What weights may be stored as: rounded, or as whole numbers of ±127 times a scale."""

_LEAST = np.float32(1e-30)
"""What the largest number of a column of zeros is taken for."""


def stored(w: Array, dtype: str, axis: int) -> Array:
    """`w` as it is computed with if it is stored as `dtype`, with a scale for all along `axis`."""
    if dtype == "bfloat16":
        return w.astype(dtype).astype(w.dtype)
    scale = np.maximum(np.abs(w).max(axis, keepdims=True, initial=0), _LEAST) / np.float32(127)
    return np.round(w / scale) * scale


def error(w: Array, dtype: str, axis: int) -> float:
    """The largest error of a column of `w`, which lies along `axis`, relative to its norm.

    Not a number if a column has such elements, or infinite ones.
    """
    with np.errstate(all="ignore"):
        squares = np.square(w, dtype=np.float64).sum(axis)
        lost = np.square(w - stored(w, dtype, axis), dtype=np.float64).sum(axis)
        parts = np.sqrt(lost / np.where(squares == 0, 1, squares))
    return float(parts.max(initial=0))


@dataclass(slots=True)
class Narrowing:
    """The errors of the constants that were asked about; each is measured once."""

    _errors: dict[tuple[int, str, int], float] = field(
        default_factory=dict[tuple[int, str, int], float]
    )
    _kept: list[Array] = field(default_factory=list[Array])
    _worst: dict[str, float] = field(default_factory=dict[str, float])

    def of(self, view: View, tolerance: float) -> View:
        """`view`, which has no kernels yet; its constant weights say what they may be stored as."""
        classes, weights = dict(view.classes), _Weights(view, self._error)
        for c, axis in _right_operands(view):
            errors = {d: weights.error(c, d, axis) for d in DTYPES}
            within = {d: e for d, e in errors.items() if e <= tolerance}
            for dtype, found in within.items():
                self._worst[dtype] = max(found, self.worst(dtype))
            classes[c] = replace(classes[c], narrow=tuple((d, axis) for d in within))
        return replace(view, classes=classes)

    def worst(self, dtype: str) -> float:
        """The largest error of a weight that may be stored as `dtype`."""
        return self._worst.get(dtype, 0.0)

    def _error(self, w: Array, dtype: str, axis: int) -> float:
        key = (id(w), dtype, axis)
        if key not in self._errors:
            self._errors[key] = error(w, dtype, axis)
            self._kept.append(w)  # so that its identity names no other
        return self._errors[key]


_Measure = Callable[[Array, str, int], float]


class _Weights:
    """The errors of constants of a view: of what is only moved, those of what it is made of."""

    def __init__(self, view: View, of_leaf: _Measure) -> None:
        self._values = ConstantValues(view)
        self._of_leaf = of_leaf

    def error(self, c: ClassId, dtype: str, axis: int) -> float:
        """The error of class `c` with a scale for all along `axis`; infinite if it has no value."""
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
    """Constant matrices of float32 that products have on their right, and the axis they sum."""
    found: dict[tuple[ClassId, int], None] = {}
    for node in (n for eclass in view.classes.values() for n in eclass.nodes):
        if node.op == "matmul":
            eclass = view.classes[node.operands[1]]
            info = eclass.struct_info
            if eclass.is_const and info.dtype == "float32" and info.ndim > 1:
                found[node.operands[1], info.ndim - 2] = None
    return found
