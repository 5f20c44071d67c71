"""The meaning of every operator in numpy: kernels and rules are compared with this table.

Functions that are no single operation of numpy (sums, `sigmoid`, `softmax` …) are computed in
float64 and rounded once to the operand's dtype.  `erf` is Python's `math.erf`, element by
element: numpy has none, and the C library's is accurate to one unit in the last place.
`ewise_fma` is computed in the next wider dtype, so that the product does not overflow where the sum
does not; where the machine has no `longdouble` of more bits, that of float64 rounds twice.
"""

from collections.abc import Mapping

from relax_egraph.ir.op import Op
from relax_egraph.ir.reference import (
    activation,
    attention,
    binary,
    conv,
    create,
    dist,
    dynamic,
    gradient,
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
    recurrence,
    reduce,
    reinterpret,
    rotary,
    sampling,
    scan,
    scatter,
    search,
    sort,
    suppression,
    unary,
    vision,
)
from relax_egraph.ir.reference.array import Reference

REFERENCE: Mapping[str, Reference] = {
    **unary.REFERENCE,
    **binary.REFERENCE,
    **activation.REFERENCE,
    **reduce.REFERENCE,
    **scan.REFERENCE,
    **search.REFERENCE,
    **sort.REFERENCE,
    **sampling.REFERENCE,
    **norm.REFERENCE,
    **linear_algebra.REFERENCE,
    **manipulate.REFERENCE,
    **join.REFERENCE,
    **create.REFERENCE,
    **index.REFERENCE,
    **scatter.REFERENCE,
    **conv.REFERENCE,
    **pool.REFERENCE,
    **image.REFERENCE,
    **points.REFERENCE,
    **attention.REFERENCE,
    **rotary.REFERENCE,
    **recurrence.REFERENCE,
    **loss.REFERENCE,
    **quantize.REFERENCE,
    **dynamic.REFERENCE,
    **reinterpret.REFERENCE,
    **gradient.REFERENCE,
    **vision.REFERENCE,
    **dist.REFERENCE,
    **suppression.REFERENCE,
}
"""The references of built-in operators.

Operands are arrays, tuples of arrays, shapes (tuples of ints) and host scalars; attributes are
complete and by name.  A result may be a view of an operand, or a scalar of numpy;
`evaluate.apply_op` makes it an array.
"""


def reference_of(op: Op) -> Reference | None:
    """The meaning of `op`; ``None`` if it calls what is outside of the graph."""
    return op.own.reference if op.own else REFERENCE.get(op.name)
