"""Messages: formats of ``R.print`` and ``R.assert_op``, out-of-range indices, lists of names."""

import string
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


def message(format: str, values: Sequence[Any]) -> str:
    """`format` with the `values` in place of its ``{}``; an empty format prints the values alone.

    Raises ``ValueError`` for any other field: a format may come out of a file, and those of Python
    read attributes and fill memory.
    """
    written = list(map(_text, values))
    if not format:
        return " ".join(written)
    parts = list(string.Formatter().parse(format))
    if any(field or spec or conversion for _, field, spec, conversion in parts):
        raise ValueError(f"the format {format!r} has a field that is not {{}}")
    fields = sum(field is not None for _, field, _, _ in parts)
    if fields != len(written):
        raise ValueError(f"the format {format!r} has {fields} fields, got {len(written)} values")
    left = iter(written)
    return "".join(text if field is None else text + next(left) for text, field, _, _ in parts)


def outside(
    indices: npt.NDArray[Any],
    shape: Sequence[int],
    axes: Sequence[int],
    operator: str,
    from_end: bool,
) -> str | None:
    """A message about the first of `indices` that is outside of its axis, if there is one.

    One of `axes` of `shape` is for all of them, several are for the elements of the last axis, as
    many as it has.  Negative ones are inside if they count `from_end`.
    """
    if not indices.size:
        return None
    columns = 1 if len(axes) == 1 else indices.shape[-1]
    extents = np.array([shape[a] for a in axes[:columns]], object)
    rows = indices.reshape(-1, columns)[:, : len(axes)].astype(object)
    lowest = -extents * from_end
    wrong = np.argwhere((rows < lowest) | (rows >= extents))
    if not len(wrong):
        return None
    row, column = wrong[0]
    return (
        f"{operator or 'check_indices'}: index {rows[row, column]} is outside of axis "
        f"{axes[column]} of extent {extents[column]}, "
        f"needs {lowest[column]} to {extents[column] - 1}"
    )


def no_element(axis: Sequence[int] | None) -> str:
    """The message of an operator that chooses an element over an empty `axis`, or over all axes."""
    over = "all axes" if axis is None else f"axis {', '.join(map(str, axis))}"
    return f"needs an element over {over}"


def some(texts: Sequence[str], most: int = 4) -> str:
    """The first of `texts` and the number of the others: ``x, y, … 7 more``."""
    more = (f"… {len(texts) - most} more",) * (len(texts) > most)
    return ", ".join((*texts[:most], *more))


def counted(count: int, noun: str, several: str = "") -> str:
    """``1 rule``, ``2 rules``; of a plural that has no s of its own, `several`."""
    return f"{count:,} {noun if count == 1 else several or f'{noun}s'}"


def _text(value: Any) -> str:
    match value:
        case np.ndarray() | str() | int() | float() | None:
            return str(value)
        case tuple():
            return f"({', '.join(map(_text, value))}{',' * (len(value) == 1)})"
        case _:
            return f"an object of type {type(value).__name__}"
