"""Magnitudes of the values that a region reads: of constants, and of results of earlier regions.

Rules deduce magnitudes within a region (``rules/magnitudes.egg``).  They see neither the elements
of a constant nor the other regions of a block, so that a region is loaded with the magnitudes of
its leaves.  These are rough, 1e32 or the largest number: equal layers stay equal regions.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from relax_egraph.egraph.encoding.constant_values import Array
from relax_egraph.egraph.node import LEAF
from relax_egraph.egraph.view import ClassId, EClass, View
from relax_egraph.ir.dtypes import limits
from relax_egraph.ir.expr import Constant, Expr, Var

ASKING = frozenset({"isnan", "isinf", "isfinite"})
"""The operators whose rules ask for magnitudes: constants are read only if a module has one."""

ORDINARY = 1e32
"""The magnitude of ordinary numbers, whose products and sums are assumed not to overflow."""

_DTYPES = ("float32", "float64")
"""The dtypes of tensors that may have a magnitude."""


@dataclass(frozen=True, slots=True)
class Magnitudes:
    """The magnitudes of variables, which `learn` adds, and of constants by identity."""

    _of_variables: dict[Var, float] = field(default_factory=dict[Var, float])
    _of_constants: dict[int, float | None] = field(default_factory=dict[int, float | None])
    _kept: list[Constant] = field(default_factory=list[Constant])

    def added_to(self, view: View) -> View:
        """`view`, whose leaves have their magnitudes."""
        classes = {
            number: replace(eclass, magnitude=self._of(view.leaves[node.key]))
            for number, eclass in view.classes.items()
            for node in eclass.nodes
            if node.op == LEAF and eclass.scalar is None and eclass.struct_info.dtype in _DTYPES
        }
        return replace(view, classes={**view.classes, **classes})

    def learn(self, values: Mapping[Var, ClassId], classes: Mapping[ClassId, EClass]) -> None:
        """Record the magnitudes of variables, each the value of a class in `classes`."""
        for var, number in values.items():
            eclass = classes[number]
            if eclass.magnitude is not None and eclass.struct_info.dtype in _DTYPES:
                self._of_variables[var] = _rough(eclass.magnitude, eclass.struct_info.dtype)

    def _of(self, leaf: Expr) -> float | None:
        if isinstance(leaf, Var):
            return self._of_variables.get(leaf)
        if not isinstance(leaf, Constant):
            return None
        if id(leaf) not in self._of_constants:
            self._of_constants[id(leaf)] = _measured(leaf.data)
            self._kept.append(leaf)  # so that its id is not reused
        return self._of_constants[id(leaf)]


def _measured(data: Array) -> float | None:
    """The rough magnitude of an array; ``None`` if it has NaN or infinities."""
    most = max(float(data.max(initial=0)), -float(data.min(initial=0)))
    return _rough(most, data.dtype.name) if np.isfinite(most) else None


def _rough(magnitude: float, dtype: str) -> float:
    return ORDINARY if magnitude <= ORDINARY else float(limits(dtype).max)
