"""Operators whose result's shape depends on data, and the shape of a value."""

from collections.abc import Mapping

import numpy as np

from relax_egraph.ir.reference.array import Array, Reference


def _shape_of(x: Array) -> tuple[int, ...]:
    return x.shape


REFERENCE: Mapping[str, Reference] = {
    "unique": np.unique,
    "shape_of": _shape_of,
}
