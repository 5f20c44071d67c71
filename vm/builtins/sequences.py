"""Sequences: immutable tuples of tensors whose length is known only at run time."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from relax_egraph.errors import RunError
from relax_egraph.vm.builtins.builtin import Builtin, of_values, wrong


def sequence_append(sequence: Any, value: Any) -> tuple[Any, ...]:
    """The sequence with `value` appended."""
    return (*_sequence("sequence_append", sequence), value)


def sequence_insert(sequence: Any, value: Any, position: Any) -> tuple[Any, ...]:
    """The sequence with `value` before `position`, which may count from the end."""
    values = _sequence("sequence_insert", sequence)
    at = _position("sequence_insert", position, len(values), len(values))
    return (*values[:at], value, *values[at:])


def sequence_erase(sequence: Any, position: Any) -> tuple[Any, ...]:
    """The sequence without the value at `position`, which may count from the end."""
    values = _sequence("sequence_erase", sequence)
    at = _position("sequence_erase", position, len(values), len(values) - 1)
    return (*values[:at], *values[at + 1 :])


def sequence_at(sequence: Any, position: Any) -> Any:
    """The value at `position`, which may count from the end."""
    values = _sequence("sequence_at", sequence)
    return values[_position("sequence_at", position, len(values), len(values) - 1)]


def sequence_length(sequence: Any) -> Any:
    """The length of the sequence, as a tensor of rank 0."""
    return np.asarray(len(_sequence("sequence_length", sequence)), np.int64)


def sequence_concat(sequence: Any, axis: Any) -> Any:
    """The tensors concatenated along `axis`."""
    return _joined("sequence_concat", np.concatenate, sequence, axis)


def sequence_stack(sequence: Any, axis: Any, shape: Any, like: Any) -> Any:
    """The tensors stacked along a new axis; for none, an empty tensor of the dtype of `like`."""
    name = "sequence_stack"
    if _sequence(name, sequence):
        return _joined(name, np.stack, sequence, axis)
    if type(shape) is not tuple or not all(type(extent) is int for extent in shape):
        raise wrong(name, "shape", shape, "a shape")
    if type(axis) is not int or not 0 <= axis <= len(shape):
        raise wrong(name, "axis", axis, f"an integer from 0 to {len(shape)}")
    return np.zeros((*shape[:axis], 0, *shape[axis:]), _array(name, "like", like).dtype)


def sequence_split(tensor: Any, parts: Any, axis: Any, keepdims: Any) -> tuple[Any, ...]:
    """A tensor split along `axis` into parts of the extents `parts`, or of one extent each.

    With one extent, the last part may be smaller.  Without `keepdims` the parts, which must have
    extent 1, lose the axis.
    """
    name = "sequence_split"
    array, sizes = _array(name, "tensor", tensor), _array(name, "parts", parts)
    if sizes.dtype.kind not in "iu" or sizes.ndim > 1:
        raise wrong(name, "parts", parts, "an integer, or integers")
    if type(axis) is not int or not 0 <= axis < array.ndim:
        raise wrong(name, "axis", axis, f"an axis of {array.ndim}")
    extent, extents = array.shape[axis], sizes.tolist()
    if isinstance(extents, int):
        if extents < 1:
            raise RunError(f"vm.builtin.{name}: parts of {extents}, needs 1 or more")
        extents = [min(extents, extent - at) for at in range(0, extent, extents)]
    if sum(extents) != extent or min(extents, default=0) < 0:
        raise RunError(f"vm.builtin.{name}: parts of {extents}, needs {extent} in all")
    if not keepdims and any(part != 1 for part in extents):
        raise RunError(f"vm.builtin.{name}: parts of {extents}, needs parts of 1 to drop the axis")
    cut = np.split(array, np.cumsum(extents)[:-1].tolist(), axis) if extents else []
    return tuple((part if keepdims else np.squeeze(part, axis)).copy() for part in cut)


def is_null(value: Any) -> Any:
    """Whether `value` is absent, as a tensor of rank 0."""
    return np.asarray(value is None)


def _sequence(name: str, value: Any) -> tuple[Any, ...]:
    if isinstance(value, list):
        return tuple(value)
    if type(value) is not tuple:
        raise wrong(name, "sequence", value, "a sequence")
    return value


def _array(name: str, operand: str, value: Any) -> npt.NDArray[Any]:
    if not isinstance(value, np.ndarray):
        raise wrong(name, operand, value, "a tensor")
    return value


def _position(name: str, position: Any, length: int, most: int) -> int:
    number = _array(name, "position", position)
    if number.size != 1 or number.dtype.kind not in "iu":
        raise wrong(name, "position", position, "an integer")
    at = int(number.item())
    counted = at + length if at < 0 else at
    if not 0 <= counted <= most:
        raise RunError(f"vm.builtin.{name}: position {at} of {length}")
    return counted


def _joined(name: str, join: Callable[..., Any], sequence: Any, axis: Any) -> Any:
    values = [_array(name, "sequence", value) for value in _sequence(name, sequence)]
    if type(axis) is not int:
        raise wrong(name, "axis", axis, "an integer")
    try:
        return join(values, axis)
    except (ValueError, TypeError) as error:
        raise RunError(f"vm.builtin.{name}: {error}") from None


SEQUENCES: tuple[Builtin, ...] = (
    of_values(sequence_append),
    of_values(sequence_insert),
    of_values(sequence_erase),
    of_values(sequence_at),
    of_values(sequence_length),
    of_values(sequence_concat),
    of_values(sequence_stack),
    of_values(sequence_split),
    of_values(is_null),
)
