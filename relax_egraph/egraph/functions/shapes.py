"""Shape functions: the struct-info rules of common operators as engine functions.

Rules within the e-graph deduce the shape of elementwise operators, of operators with the shape as
an operand, of permutations, and of operators that keep the shape of their first operand.  The
functions here are for other common operators.  For all others the struct-info rule is evaluated for
each node (`saturation.infer`).
"""

from collections.abc import Mapping
from typing import Any

from relax_egraph.egraph.encoding.attributes import SORT_OF_ATTR, meant
from relax_egraph.egraph.functions.function import FUNCTIONS, Function
from relax_egraph.errors import IllTyped
from relax_egraph.ir.op import OPS, Op
from relax_egraph.ir.struct_info import Shape, TensorStructInfo, tensor

KEEPS_SHAPE = frozenset(
    (
        *("nn.softmax", "nn.log_softmax", "nn.layer_norm", "nn.rms_norm", "nn.group_norm"),
        *("nn.instance_norm", "nn.rotary_embedding"),
    )
)
"""Operators whose result has the shape of the first operand, whatever their attributes are."""

SHAPED = (
    *("matmul", "expand_dims", "squeeze", "flatten"),
    *("dist.shard", "dist.replicate", "dist.all_gather", "dist.all_reduce"),
    *("sum", "mean", "max", "min", "prod", "variance", "std"),
)
"""Operators on tensors; their shapes do not depend on dtypes."""


def shape_function(op: Op) -> Function:
    """The function from the shapes of operands, and attributes, to the shape of the result."""

    def compute(*args: Any) -> Shape | None:
        shapes, values = args[: len(op.operands)], args[len(op.operands) :]
        attrs = {a.name: meant(a, v) for a, v in zip(op.attrs, values, strict=True)}
        try:
            info = op.rule(*(tensor(shape, _DTYPE) for shape in shapes), **attrs)
        except IllTyped:  # reported for the value at the end of the run
            return None
        return info.dims if isinstance(info, TensorStructInfo) else None

    params = (
        *((o.name, "Shape") for o in op.operands),
        *((a.name, SORT_OF_ATTR[a.kind]) for a in op.attrs),
    )
    return Function(f"engine/shape/{op.name}", params, "Shape", "the shape of a result", compute)


_DTYPE = "float32"

SHAPE_FUNCTIONS: Mapping[str, Function] = {name: shape_function(OPS[name]) for name in SHAPED}
"""The shape functions by operator."""

FUNCTIONS.update({function.name: function for function in SHAPE_FUNCTIONS.values()})
