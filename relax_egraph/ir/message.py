"""Messages with values in them, as ``R.print`` and ``R.assert_op`` write them."""

import string
from collections.abc import Sequence
from typing import Any

import numpy as np


def message(format: str, values: Sequence[Any]) -> str:
    """`format` with the `values` in place of its ``{}``; of an empty format, the values alone.

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


def _text(value: Any) -> str:
    match value:
        case np.ndarray() | str() | int() | float() | None:
            return str(value)
        case tuple():
            return f"({', '.join(map(_text, value))}{',' * (len(value) == 1)})"
        case _:
            return f"an object of type {type(value).__name__}"
