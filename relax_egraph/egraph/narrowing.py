"""Which constants of a program may be stored in fewer bits, within a tolerance.

A weight ``w`` that is stored as ``v`` changes a product by ``|x @ w - x @ v|``, which in each
column is at most ``|x|`` times ``|w - v|``, the norms of a row and of a column.  The error of a
weight is the largest ``|w - v| / |w|`` of its columns: so much of ``|x| |w|`` is what no result
is off by more, and of a random ``x`` what results are off by on average.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from relax_egraph.egraph.view import LEAF, ClassId, ENode, View
from relax_egraph.ir.expr import Constant

Array: TypeAlias = npt.NDArray[Any]

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

    tolerance: float
    errors: dict[tuple[int, str, int], float] = field(
        default_factory=dict[tuple[int, str, int], float]
    )
    _kept: list[Array] = field(default_factory=list[Array])

    def of(self, view: View) -> View:
        """`view`, whose constant weights say what they may be stored as."""
        classes = dict(view.classes)
        for c, axes in _summed(view).items():
            leaf = _leaf(view, c)
            if leaf is None:
                continue
            found = ((d, a) for a in sorted(axes) for d in DTYPES if self._is_within(leaf, d, a))
            classes[c] = replace(classes[c], narrow=tuple(found))
        return replace(view, classes=classes)

    def worst(self, dtype: str) -> float:
        """The largest error of a weight that may be stored as `dtype`."""
        found = (e for (_, d, _), e in self.errors.items() if d == dtype and e <= self.tolerance)
        return max(found, default=0.0)

    def _is_within(self, w: Array, dtype: str, axis: int) -> bool:
        key = (id(w), dtype, axis)
        if key not in self.errors:
            self.errors[key] = error(w, dtype, axis)
            self._kept.append(w)  # so that its identity names no other
        return self.errors[key] <= self.tolerance


def _leaf(view: View, c: ClassId) -> Array | None:
    """The elements of class `c`, if it is a constant of float32 with rows and columns."""
    for node in view.classes[c].nodes:
        value = view.leaves[node.key] if node.op == LEAF else None
        if isinstance(value, Constant) and value.data.dtype == np.float32 and value.data.ndim > 1:
            return value.data
    return None


def _summed(view: View) -> Mapping[ClassId, set[int]]:
    """By class the axes that products may sum over, of what is a right operand or becomes one."""
    found: dict[ClassId, set[int]] = {}
    for node in (n for eclass in view.classes.values() for n in eclass.nodes):
        for c in _weights(node):
            rank = view.classes[c].struct_info.ndim
            if rank < 2:
                continue
            at = rank - 2
            if node.op == "permute_dims":
                axes = dict(node.attrs)["axes"]
                assert isinstance(axes, tuple)
                at = axes[at]
                assert isinstance(at, int)
            found.setdefault(c, set()).add(at)
    return found


def _weights(node: ENode) -> Iterator[ClassId]:
    match node.op:
        case "matmul":
            yield node.classes[1]
        case "permute_dims" | "concat":
            yield from node.classes
        case _:
            pass
