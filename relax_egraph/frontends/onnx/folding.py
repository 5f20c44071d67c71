"""Shape arithmetic of a graph, computed at import: tensors of which each element is known."""

import numpy as np

from relax_egraph.errors import IllTyped
from relax_egraph.frontends.building.dim_arithmetic import Test
from relax_egraph.frontends.building.elements import MOST, Array, Elements
from relax_egraph.frontends.onnx.attributes import Attributes
from relax_egraph.frontends.onnx.fold_elementwise import CONDITIONS, ELEMENTWISE, QUOTIENTS
from relax_egraph.frontends.onnx.fold_movement import MOVEMENT
from relax_egraph.frontends.onnx.folds import Operands
from relax_egraph.frontends.onnx.tensors import dtype_of

_FOLDS = {**ELEMENTWISE, **MOVEMENT}


def folded(
    op: str, operands: Operands, attributes: Attributes, is_nonnegative: Test
) -> Elements | None:
    """The elements of a node's result for operands of known elements, or ``None``.

    An operand that is left out is ``None``.  Operands and attributes need not fit together.
    `is_nonnegative` tells which dimensions are known to be nonnegative at the node.
    """
    fold = QUOTIENTS[op](is_nonnegative) if op in QUOTIENTS else _FOLDS.get(op)
    if fold is None:
        return None
    try:
        result = fold(operands, attributes)
    except (ValueError, IndexError, TypeError, OverflowError, IllTyped):
        return None  # inconsistent operands: the converter reports them
    if result is None:
        return None
    array, dtype = np.asarray(result, object), _dtype(op, operands, attributes)
    return Elements(array, dtype) if array.size <= MOST and _holds(dtype, array) else None


def _holds(dtype: str, array: Array) -> bool:
    """Whether `dtype` can represent every number of `array`."""
    if dtype == "bool":
        return True
    limits = np.iinfo(dtype)
    numbers = [e for e in array.reshape(-1).tolist() if isinstance(e, int)]
    return all(int(limits.min) <= number <= int(limits.max) for number in numbers)


def _dtype(op: str, operands: Operands, attributes: Attributes) -> str:
    if op == "Cast":
        return attributes.dtype("to")
    if op in CONDITIONS:
        return "bool"
    if op == "ConstantOfShape":
        return dtype_of(attributes.tensor("value").data_type)
    typed = operands[1] if op in ("CastLike", "Where") else operands[0]
    assert typed is not None
    return typed.dtype
