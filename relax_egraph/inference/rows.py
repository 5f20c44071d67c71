"""Any number of rows through a model: in one call, or in calls of the number it is made for."""

from collections.abc import Mapping

import numpy as np

from relax_egraph.errors import RunError
from relax_egraph.inference.model import Array, Model


def rows_of(model: Model) -> int | None:
    """How many rows each call of `model` takes; ``None`` if any number.

    Raises `RunError` if its inputs and results have no rows in common.
    """
    if model.batch:
        return None
    firsts = {tensor.shape[0] if tensor.shape else "" for tensor in (*model.inputs, *model.outputs)}
    match [*firsts]:
        case [int(rows)] if rows > 0:
            return rows
        case _:
            raise RunError(
                f"{model!r} has no batch dimension: needs a first extent that all inputs and "
                "results share, a number or a symbol that is in no other extent"
            )


def through(model: Model, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The results of `model` for all rows of `inputs`.

    A model of a fixed number of rows is called again and again; its last call repeats the last row
    where rows are missing.  Raises what `rows_of` and calls of a `Model` raise.
    """
    each = rows_of(model)
    counts = {len(array) for array in inputs.values()}
    if each is None or counts in (set[int](), {each}):
        return model(inputs)
    if len(counts) > 1:
        lengths = ", ".join(f"{len(array)} of {name}" for name, array in inputs.items())
        raise RunError(f"inputs differ in their numbers of rows: {lengths}")
    (count,) = counts
    if not count:
        return {t.name: np.zeros((0, *map(int, t.shape[1:])), t.dtype) for t in model.outputs}
    parts = [
        model({name: _padded(array[at : at + each], each) for name, array in inputs.items()})
        for at in range(0, count, each)
    ]
    return {name: np.concatenate([part[name] for part in parts])[:count] for name in parts[0]}


def _padded(rows: Array, count: int) -> Array:
    if len(rows) == count:
        return rows
    return np.concatenate([rows, np.repeat(rows[-1:], count - len(rows), 0)])
