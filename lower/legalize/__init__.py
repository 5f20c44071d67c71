"""The loops of each operator, as tensor expressions.

`LEGALIZE` has a function for each operator that has loops.  It mirrors the operator's rule:
a tensor for a tensor operand, a tuple of tensors for a tuple, a tuple of dimensions for a shape, a
dimension for a host scalar, keywords for the (complete) attributes; operands that the call leaves
out are not given.  It raises `NotLowerable` where what it needs to know of the extents is not
proven.
"""

from collections.abc import Mapping

from relax_egraph.lower.legalize import (
    activation,
    attention,
    binary,
    conv,
    create,
    dynamic,
    image,
    index,
    join,
    linear_algebra,
    loss,
    manipulate,
    norm,
    points,
    pool,
    quantize,
    rearrange,
    reduce,
    rotary,
    sampling,
    scan,
    scatter,
    search,
    sort,
    unary,
)
from relax_egraph.lower.legalize.elementwise import Legalize as Legalize
from relax_egraph.lower.legalize.stored import widening

CHECKS = frozenset({"check_indices"})
"""Operators whose result is the first operand, if a loop function finds nothing wrong with it."""

BUILTINS = frozenset({"shape_of", "tensor_to_shape", "prim_less_equal"})
"""Operators that are a builtin of the machine, of the same name: they are on what it has itself."""

CHOICES = frozenset({"argmax", "argmin"})
"""Operators whose loops need an element of the operand over the `axis` of the call."""

VIEWS = frozenset({"reshape", "flatten", "expand_dims", "squeeze", "nn.batch_flatten"})
"""The operators whose result is the operand's memory, under another shape."""

_LOOPS: Mapping[str, Legalize] = {
    **unary.LEGALIZE,
    **binary.LEGALIZE,
    **activation.LEGALIZE,
    **reduce.LEGALIZE,
    **scan.LEGALIZE,
    **search.LEGALIZE,
    **sort.LEGALIZE,
    **sampling.LEGALIZE,
    **norm.LEGALIZE,
    **linear_algebra.LEGALIZE,
    **manipulate.LEGALIZE,
    **join.LEGALIZE,
    **rearrange.LEGALIZE,
    **create.LEGALIZE,
    **index.LEGALIZE,
    **scatter.LEGALIZE,
    **conv.LEGALIZE,
    **pool.LEGALIZE,
    **image.LEGALIZE,
    **points.LEGALIZE,
    **attention.LEGALIZE,
    **rotary.LEGALIZE,
    **loss.LEGALIZE,
    **quantize.LEGALIZE,
    **dynamic.LEGALIZE,
}

LEGALIZE: Mapping[str, Legalize] = {name: widening(loops) for name, loops in _LOOPS.items()}
"""By operator name; what is not here runs as a packed function, `relax.run.<operator>`."""
