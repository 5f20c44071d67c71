"""Applies operators to arrays by their numpy references, with checks."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from relax_egraph.errors import OperatorError, RunError
from relax_egraph.ir.equations import refusal_of
from relax_egraph.ir.expr import Attr, Attrs, Call, Var
from relax_egraph.ir.matching import Value, as_value, describe, info_of
from relax_egraph.ir.op import Op, complete_attrs
from relax_egraph.ir.own_samples import check_own
from relax_egraph.ir.reference import reference_of
from relax_egraph.ir.reference.array import Reference
from relax_egraph.ir.reference.stored import OF_BITS, apply_stored, is_of_storage_types

Array: TypeAlias = npt.NDArray[Any]


def apply_op(op: Op, operands: Sequence[Value], attrs: Mapping[str, Attr]) -> Value:
    """The result of `op` on arrays and shapes; raises `RunError` if they do not fit together.

    Results own their memory: each may be written later.
    """
    return _each(_own, _result(op, operands, attrs), operands)


def apply_to_constants(op: Op, operands: Sequence[Value], attrs: Mapping[str, Attr]) -> Value:
    """As `apply_op`, for operands and results that are never written.

    A result that is all of an operand, in another order or shape, shares its memory; a part of one
    is copied, so that it does not keep the whole alive.
    """
    return _each(_whole_or_own, _result(op, operands, attrs), operands)


def _result(op: Op, operands: Sequence[Value], attrs: Mapping[str, Attr]) -> Value:
    """The result of `op`, or a tuple of them, which may be views of operands."""
    reference = reference_of(op)
    if reference is None:
        raise RunError(f"{op} calls what is outside of the graph: it has no value of its own")
    try:
        with np.errstate(all="ignore"):
            result = _referred(op, reference, operands, complete_attrs(op, attrs))
        if op.own:
            check_own(op, operands, complete_attrs(op, attrs), result)
    except (OperatorError, RunError):  # a message about the values themselves
        raise
    except _MISFITS as error:
        raise RunError(_refusal(op, operands, attrs, error)) from None
    return tuple(map(as_value, result)) if isinstance(result, tuple) else np.asarray(result)


_MISFITS = (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError)
"""The exceptions of Python and numpy for operands and attributes that do not fit together."""


def _refusal(op: Op, operands: Sequence[Value], attrs: Mapping[str, Attr], error: Exception) -> str:
    """The message that `op` has no result: that of its rule if extents differ, else numpy's."""
    if not op.intrinsic:
        values = (Var("value", info_of(value)) for value in operands if value is not None)
        if (message := refusal_of(Call(op, tuple(values), attrs))) is not None:
            return message
    described = ", ".join(map(describe, operands))
    return f"{op} of {described}: {str(error).strip()}"


def _referred(op: Op, reference: Reference, operands: Sequence[Value], attrs: Attrs) -> Any:
    if op.name not in OF_BITS and is_of_storage_types(operands, attrs):
        return apply_stored(op, reference, operands, attrs)
    return reference(*operands, **attrs)


def _each(
    stored: Callable[[Array, Sequence[Value]], Array], result: Value, operands: Sequence[Value]
) -> Value:
    """`result` with each array replaced by that of `stored`."""
    match result:
        case tuple():
            return tuple(_each(stored, r, operands) for r in cast(tuple[Value, ...], result))
        case np.ndarray():
            return stored(cast(Array, result), operands)
        case _:
            return result


def _own(result: Array, operands: Sequence[Value]) -> Array:
    """`result`, copied if it may share memory with an operand."""
    shared = any(np.may_share_memory(result, array) for array in _arrays(operands))
    return result.copy() if shared else result


def _whole_or_own(result: Array, operands: Sequence[Value]) -> Array:
    """`result`, copied if it shares memory with an operand and is only a part of it."""
    whole = (array for array in _arrays(operands) if array.nbytes == result.nbytes)
    return result if any(np.may_share_memory(result, a) for a in whole) else _own(result, operands)


def _arrays(values: Iterable[Value]) -> Iterator[Array]:
    """The arrays among `values` and in tuples of them."""
    for value in values:
        if isinstance(value, tuple):
            yield from _arrays(cast(tuple[Value, ...], value))
        elif isinstance(value, np.ndarray):
            yield cast(Array, value)
