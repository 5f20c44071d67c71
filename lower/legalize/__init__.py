"""Legalization: the loops of each operator, as tensor expressions.

`LEGALIZE` maps operators to functions that mirror the operator's rule: a tensor for a tensor
operand, a tuple of tensors for a tuple, a tuple of dimensions for a shape, a dimension for a Python
number, keywords for the (complete) attributes; absent operands are omitted.  Such a function raises
`NotLowerable` if the extents are not proven to satisfy its requirements.
"""

from collections.abc import Mapping

from relax_egraph.ir.op import Op
from relax_egraph.lower.legalize import (
    activation,
    attention,
    binary,
    conv,
    create,
    dist,
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
    recurrence,
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
from relax_egraph.lower.legalize.own import own_loops
from relax_egraph.lower.legalize.stored import widening

CHECKS = frozenset({"check_indices"})
"""Operators whose result is the first operand, if a loop function confirms that it is valid."""

BUILTINS = frozenset({"shape_of", "tensor_to_shape", "prim_less_equal"})
"""Operators that are a builtin of the machine with the same name."""

CHOICES = frozenset({"argmax", "argmin"})
"""Operators whose loops need an element of the operand along the `axis` of the call."""

VIEWS = frozenset({"reshape", "flatten", "expand_dims", "squeeze", "nn.batch_flatten"})
"""Operators whose result is the operand's memory in another shape."""

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
    **recurrence.LEGALIZE,
    **loss.LEGALIZE,
    **quantize.LEGALIZE,
    **dynamic.LEGALIZE,
    **dist.LEGALIZE,
}

LEGALIZE: Mapping[str, Legalize] = {name: widening(loops) for name, loops in _LOOPS.items()}
"""The loops by operator; other operators run as packed functions, `relax.run.<operator>`."""


def loops_of(op: Op) -> Legalize | None:
    """The loops of `op`; ``None`` if it has none."""
    return own_loops(op, op.own) if op.own else LEGALIZE.get(op.name)
