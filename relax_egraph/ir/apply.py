"""What an operator computes of arrays: its numpy reference, checked."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from relax_egraph.errors import RunError
from relax_egraph.ir.expr import Attr, Attrs
from relax_egraph.ir.matching import Value, as_value, describe
from relax_egraph.ir.op import Op, complete_attrs
from relax_egraph.ir.reference import REFERENCE
from relax_egraph.ir.reference.array import Reference
from relax_egraph.ir.reference.stored import apply_stored, is_of_storage_types


def apply_op(op: Op, operands: Sequence[Value], attrs: Mapping[str, Attr]) -> Value:
    """What `op` computes of arrays and shapes; raises `RunError` if they do not fit together."""
    reference = REFERENCE.get(op.name)
    if reference is None:
        raise RunError(f"{op} calls what is outside of the graph: it has no value of its own")
    try:
        with np.errstate(all="ignore"):
            result = _referred(op, reference, operands, complete_attrs(op, attrs))
    except (ValueError, MemoryError) as error:
        asked = ", ".join(map(describe, operands))
        raise RunError(f"{op} of {asked}: {str(error).strip()}") from None
    if isinstance(result, tuple):
        return tuple(_own(as_value(r), operands) for r in result)
    return _own(np.asarray(result), operands)


def _referred(op: Op, reference: Reference, operands: Sequence[Value], attrs: Attrs) -> Any:
    if is_of_storage_types(operands, attrs):
        return apply_stored(op, reference, operands, attrs)
    return reference(*operands, **attrs)


def _own(result: Value, operands: Iterable[Value]) -> Value:
    """`result`, copied if it may share memory with an operand: each may be written later."""
    match result:
        case np.ndarray():
            shared = any(_shares(result, operand) for operand in operands)
            return result.copy() if shared else result
        case _:
            return result


def _shares(result: npt.NDArray[Any], operand: Value) -> bool:
    if isinstance(operand, tuple):
        return any(_shares(result, field) for field in operand)
    return isinstance(operand, np.ndarray) and np.may_share_memory(result, operand)
