"""Reciprocals of constant divisors: rules see whether they are finite, and not the elements.

``x / k`` is ``x · (1 / k)`` for every k, but ``(x + c) / k`` is not ``x · (1 / k) + c · (1 / k)``
where an element of k is 0: infinities of both signs are no number.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from relax_egraph.egraph.encoding.constant_values import Array, ConstantValues
from relax_egraph.egraph.view import ClassId, View

_LEAST, _MOST = 1e-30, 1e30
"""The magnitudes of elements far from 0 and from infinity, in float32."""

_DTYPES = ("float32", "float64")


def are_invertible(x: Array) -> Array:
    """Whether each element of `x` is far from 0 and from infinity."""
    size = np.abs(x.astype(np.float64))
    return (size >= _LEAST) & (size <= _MOST)


def with_reciprocals(view: View) -> View:
    """`view`, whose constant divisors have reciprocals if all of their elements do."""
    divisors = dict.fromkeys(_divisors(view))
    if not divisors:
        return view
    values, classes = ConstantValues(view), dict(view.classes)
    for c in divisors:
        if values.made_by(c) and are_invertible(values.of(c)).all():
            classes[c] = replace(classes[c], has_reciprocal=True)
    return replace(view, classes=classes)


def _divisors(view: View) -> Iterator[ClassId]:
    """The constant tensors by which the program divides, below their broadcasts."""
    for eclass in view.classes.values():
        for node in eclass.nodes:
            if node.op != "divide":
                continue
            divisor = node.operands[1]
            below = view.classes[divisor].nodes[0]
            c = below.operands[0] if below.op == "broadcast_to" else divisor
            known = view.classes[c]
            if known.is_const and known.struct_info.ndim > 0 and known.struct_info.dtype in _DTYPES:
                yield c
