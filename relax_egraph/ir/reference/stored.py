"""Operators of storage types: computed by the reference of a wider dtype, rounded once."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relax_egraph.errors import IllTyped
from relax_egraph.ir.dtypes import computed, is_stored, name_of
from relax_egraph.ir.expr import Attr, Call, Constant, Expr, PrimValue, ShapeExpr, Tuple
from relax_egraph.ir.op import Op, Operand, infer
from relax_egraph.ir.reference.array import Reference
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, TupleStructInfo

OF_BITS = frozenset({"reinterpret"})
"""Operators on the bits of elements, which those of a wider dtype do not have."""


def is_of_storage_types(operands: Sequence[Any], attrs: Mapping[str, Attr]) -> bool:
    """Whether an operand or a requested result is of a storage type."""
    return any(map(_has_stored, operands)) or any(_names_stored(a) for a in attrs.values())


def apply_stored(
    op: Op, reference: Reference, operands: Sequence[Any], attrs: Mapping[str, Attr]
) -> Any:
    """The `reference` of `op` on operands of storage types; its rule says the dtype of the result.

    Raises ``ValueError`` for operands that either refuses.
    """
    wide = {k: computed(str(a)) if _names_stored(a) else a for k, a in attrs.items()}
    result = reference(*map(_widened, operands), **wide)
    call = Call(op, tuple(map(_expression, op.operands, operands)), attrs)
    try:
        return _rounded(result, infer(call))
    except IllTyped as refusal:
        raise ValueError(str(refusal)) from None


def _names_stored(attr: Attr) -> bool:
    return isinstance(attr, str) and is_stored(attr)


def _has_stored(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(_has_stored, value))
    return isinstance(value, np.ndarray | np.generic) and is_stored(name_of(value.dtype))


def _widened(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_widened, value))
    return value.astype(computed(name_of(value.dtype))) if _has_stored(value) else value


def _rounded(result: Any, info: StructInfo) -> Any:
    match info:
        case TupleStructInfo(fields=fields):
            return tuple(map(_rounded, result, fields))
        case TensorStructInfo(dtype=dtype) if is_stored(dtype):
            return np.asarray(result).astype(dtype)
        case _:
            return result


def _expression(operand: Operand, value: Any) -> Expr:
    if isinstance(value, tuple):
        if any(isinstance(v, np.ndarray) for v in value):
            return Tuple(tuple(map(Constant, value)))
        return ShapeExpr(value)
    if operand.kind == "prim" and isinstance(value, np.ndarray | np.generic):
        return PrimValue(value.item(), name_of(value.dtype))
    if isinstance(value, np.ndarray | np.generic):
        return Constant(np.asarray(value))
    return PrimValue(value, "float64" if isinstance(value, float) else "int64")
