"""The shapes of what operators make, by their struct-info rules, as functions of the engine.

Rules within the e-graph deduce it of elementwise operators, and of operators that have it as an
operand; these are the others that rules often make.  For the rest the operator itself is asked for
each value (`saturation.infer`).
"""

from collections.abc import Mapping
from typing import Any

from relax_egraph.egraph.encoding.attributes import SORT_OF_ATTR, meant
from relax_egraph.egraph.functions.function import FUNCTIONS, Function
from relax_egraph.errors import IllTyped
from relax_egraph.ir.op import OPS, Op
from relax_egraph.ir.struct_info import Shape, TensorStructInfo, tensor

SHAPED = (
    *("matmul", "permute_dims", "expand_dims", "squeeze", "flatten", "nn.softmax"),
    "nn.log_softmax",
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
        except IllTyped:  # which is told of the value, when the run is over
            return None
        return info.dims if isinstance(info, TensorStructInfo) else None

    params = (
        *((o.name, "Shape") for o in op.operands),
        *((a.name, SORT_OF_ATTR[a.kind]) for a in op.attrs),
    )
    return Function(f"engine/shape/{op.name}", params, "Shape", "the shape of a result", compute)


_DTYPE = "float32"

SHAPE_FUNCTIONS: Mapping[str, Function] = {name: shape_function(OPS[name]) for name in SHAPED}
"""By operator."""

FUNCTIONS.update({function.name: function for function in SHAPE_FUNCTIONS.values()})
