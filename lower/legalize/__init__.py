"""The loops of each operator, as tensor expressions.

`LEGALIZE` has a function for each operator that has loops.  It mirrors the operator's rule:
a tensor for a tensor operand, a tuple of dimensions for a shape, keywords for the (complete)
attributes.  It raises `NotLowerable` where what it needs to know of the extents is not proven.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

from relax_egraph.lower.legalize import elementwise, linear_algebra, manipulate, nn, reduce
from relax_egraph.tir import te

Legalize: TypeAlias = Callable[..., te.Tensor]
"""From the operands and attributes of an operator to its result."""

VIEWS = frozenset({"reshape", "flatten", "expand_dims", "squeeze"})
"""The operators whose result is the operand's memory, under another shape."""

LEGALIZE: Mapping[str, Legalize] = {
    **{
        name: partial(elementwise.elementwise, name.rpartition(".")[2], scalar)
        for name, scalar in {**elementwise.SCALARS, **nn.SCALARS}.items()
    },
    "astype": elementwise.astype,
    "nn.softmax": nn.softmax,
    "matmul": linear_algebra.matmul,
    "sum": reduce.sum_,
    "max": reduce.max_,
    "min": reduce.min_,
    "mean": reduce.mean,
    "permute_dims": manipulate.permute_dims,
    "broadcast_to": manipulate.broadcast_to,
    "reshape": manipulate.reshape,
    "flatten": manipulate.flatten,
    "expand_dims": manipulate.expand_dims,
    "squeeze": manipulate.squeeze,
}
"""By operator name: every operator but the intrinsics, ``unique`` and ``shape_of``."""
