"""Any number of rows through a model: in one call, or in calls of the number it is made for."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from relax_egraph.errors import RunError
from relax_egraph.inference.tensor import Tensor

Array: TypeAlias = npt.NDArray[Any]

Arrays: TypeAlias = Mapping[str, Array]
"""Arrays by the names of inputs or results."""


class Declared(Protocol):
    """The inputs and results of a function, and its batch dimension: a `Signature` or a model."""

    @property
    def inputs(self) -> Sequence[Tensor]: ...  # noqa: D102

    @property
    def outputs(self) -> Sequence[Tensor]: ...  # noqa: D102

    @property
    def batch(self) -> str | None: ...  # noqa: D102


class Function(Declared, Protocol):
    """A function of named arrays, such as a `Model`."""

    def __call__(self, inputs: Arrays, /) -> Arrays:
        """The results."""
        ...


def rows_per_call(declared: Declared) -> int | None:
    """How many rows each call takes; ``None`` if any number.

    Raises `RunError` if inputs and results have no rows in common.
    """
    if declared.batch:
        return None
    tensors = (*declared.inputs, *declared.outputs)
    match [*{tensor.shape[0] if tensor.shape else "" for tensor in tensors}]:
        case [int(rows)] if rows > 0:
            return rows
        case _:
            raise RunError(
                f"{declared!r} has no batch dimension: needs a first extent that all inputs and "
                "results share, a number or a symbol that is in no other extent"
            )


def through(function: Function, inputs: Arrays) -> Arrays:
    """The results of `function` for all rows of `inputs`.

    A function of a fixed number of rows is called again and again; its last call repeats the last
    row where rows are missing.  Raises what `rows_per_call` and calls of `function` raise.
    """
    each = rows_per_call(function)
    counts = {len(array) for array in inputs.values()}
    if each is None or counts in (set[int](), {each}):
        return function(inputs)
    if len(counts) > 1:
        lengths = ", ".join(f"{len(array)} of {name}" for name, array in inputs.items())
        raise RunError(f"inputs differ in their numbers of rows: {lengths}")
    (count,) = counts
    if not count:
        return {t.name: np.zeros((0, *map(int, t.shape[1:])), t.dtype) for t in function.outputs}
    parts = [
        function({name: _padded(array[at : at + each], each) for name, array in inputs.items()})
        for at in range(0, count, each)
    ]
    return {name: rows[:count] for name, rows in joined(parts).items()}


def joined(parts: Sequence[Arrays]) -> Arrays:
    """The rows of several calls as one call."""
    first, *others = parts
    if not others:
        return first
    return {name: np.concatenate([part[name] for part in parts]) for name in first}


def _padded(rows: Array, count: int) -> Array:
    if len(rows) == count:
        return rows
    return np.concatenate([rows, np.repeat(rows[-1:], count - len(rows), 0)])
