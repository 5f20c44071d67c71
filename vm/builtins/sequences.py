"""Sequences: tuples of tensors whose length is known only at run time.  None is ever changed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from relax_egraph.errors import RunError
from relax_egraph.vm.builtins.builtin import Builtin, of_values, wrong


def sequence_append(sequence: Any, value: Any) -> tuple[Any, ...]:
    """The sequence with one more value at its end."""
    return (*_sequence("sequence_append", sequence), value)


def sequence_insert(sequence: Any, value: Any, position: Any) -> tuple[Any, ...]:
    """The sequence with `value` before `position`, which may count from the end."""
    held = _sequence("sequence_insert", sequence)
    at = _position("sequence_insert", position, len(held), len(held))
    return (*held[:at], value, *held[at:])


def sequence_erase(sequence: Any, position: Any) -> tuple[Any, ...]:
    """The sequence without the value at `position`, which may count from the end."""
    held = _sequence("sequence_erase", sequence)
    at = _position("sequence_erase", position, len(held), len(held) - 1)
    return (*held[:at], *held[at + 1 :])


def sequence_at(sequence: Any, position: Any) -> Any:
    """The value at `position`, which may count from the end."""
    held = _sequence("sequence_at", sequence)
    return held[_position("sequence_at", position, len(held), len(held) - 1)]


def sequence_length(sequence: Any) -> Any:
    """How many values there are, as a tensor of rank 0."""
    return np.asarray(len(_sequence("sequence_length", sequence)), np.int64)


def sequence_concat(sequence: Any, axis: Any) -> Any:
    """The tensors one behind the other along `axis`."""
    return _joined("sequence_concat", np.concatenate, sequence, axis)


def sequence_stack(sequence: Any, axis: Any, shape: Any, like: Any) -> Any:
    """The tensors side by side along a new axis; of none, none of `shape`, of `like`'s dtype."""
    name = "sequence_stack"
    if _sequence(name, sequence):
        return _joined(name, np.stack, sequence, axis)
    if type(shape) is not tuple or not all(type(extent) is int for extent in shape):
        raise wrong(name, "shape", shape, "a shape")
    if type(axis) is not int or not 0 <= axis <= len(shape):
        raise wrong(name, "axis", axis, f"an integer from 0 to {len(shape)}")
    return np.zeros((*shape[:axis], 0, *shape[axis:]), _array(name, "like", like).dtype)


def sequence_split(tensor: Any, parts: Any, axis: Any, keepdims: Any) -> tuple[Any, ...]:
    """A tensor cut along `axis` in parts of given extents, or of one extent, the last one smaller.

    Without `keepdims` the parts, which are of extent 1, lose the axis.
    """
    name = "sequence_split"
    array, sizes = _array(name, "tensor", tensor), _array(name, "parts", parts)
    if sizes.dtype.kind not in "iu" or sizes.ndim > 1:
        raise wrong(name, "parts", parts, "an integer, or integers")
    if type(axis) is not int or not 0 <= axis < array.ndim:
        raise wrong(name, "axis", axis, f"an axis of {array.ndim}")
    extent, wanted = array.shape[axis], sizes.tolist()
    if isinstance(wanted, int):
        if wanted < 1:
            raise RunError(f"vm.builtin.{name}: parts of {wanted}, needs 1 or more")
        wanted = [min(wanted, extent - at) for at in range(0, extent, wanted)]
    if sum(wanted) != extent or min(wanted, default=0) < 0:
        raise RunError(f"vm.builtin.{name}: parts of {wanted}, needs {extent} in all")
    if not keepdims and any(part != 1 for part in wanted):
        raise RunError(f"vm.builtin.{name}: parts of {wanted}, needs parts of 1 to drop the axis")
    cut = np.split(array, np.cumsum(wanted)[:-1].tolist(), axis) if wanted else []
    return tuple((part if keepdims else np.squeeze(part, axis)).copy() for part in cut)


def is_null(value: Any) -> Any:
    """Whether there is no value, as a tensor of rank 0."""
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
    held = [_array(name, "sequence", value) for value in _sequence(name, sequence)]
    if type(axis) is not int:
        raise wrong(name, "axis", axis, "an integer")
    try:
        return join(held, axis)
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
