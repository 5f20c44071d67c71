"""Parsers of option values: ``n=128``, ``x=x.npy``, ``x=1,n,224``, files.

A malformed value raises ``click.BadParameter``, which click prints with the name of the option.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import click

import relax_egraph as rx

EXISTING: Any = click.Path(exists=True, dir_okay=False, path_type=Path)

Named: TypeAlias = Callable[[str], tuple[str, Any]]

_MOST_DIGITS = 18
"""The largest size: sizes are integers of 64 bits."""


def output(value: str | Path) -> Path:
    """An output file; its folder must exist, which is checked before the work starts."""
    path = Path(value)
    if path.is_dir():
        raise click.BadParameter(f"{path} is a folder")
    if not path.parent.is_dir():
        raise click.BadParameter(f"there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise click.BadParameter(f"folder {path.parent} cannot be written")
    return path


def archive(path: str) -> dict[str, Any]:
    """The arrays of an .npz, by name."""
    import numpy as np

    from relax_egraph.ir.dtypes import from_file

    file = EXISTING.convert(path, None, None)
    try:
        data: Any = np.load(file, allow_pickle=False)
        if not isinstance(data, np.ndarray):
            return {name: from_file(data[name]) for name in data.files}
    except OSError as error:
        raise click.BadParameter(f"{file}: {error.strerror or error}") from None
    except Exception:  # numpy raises many kinds for other files
        raise click.BadParameter(f"{file} is no archive of arrays (.npz)") from None
    raise click.BadParameter(f"{file} is one array: needs an archive (.npz), or --input")


def target(value: str) -> str:
    """The name of a processor."""
    from relax_egraph.lower.jit.processors import processor

    try:
        processor(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return value


def machine(value: str) -> "rx.Profile":
    """The profile of a machine: ``calibrated``, or a file."""
    if value == "calibrated":
        return rx.calibrated()
    return rx.Profile.read(EXISTING.convert(value, None, None))


def _named(form: str, example: str, read: Callable[[str], Any]) -> Named:
    """A parser of a name, an equals sign, and a value that `read` parses."""

    def named(value: str) -> tuple[str, Any]:
        name, equals, text = value.partition("=")
        try:
            if not name or not equals:
                raise ValueError(value)
            return name, read(text)
        except ValueError:
            message = f"{value!r} is not of the form {form}, such as {example}"
            raise click.BadParameter(message) from None

    return named


def _size(text: str) -> int:
    if not text.isdecimal() or len(text) > _MOST_DIGITS:
        raise ValueError(text)
    return int(text)


def _extents(text: str) -> tuple[int | str, ...]:
    """The extents in ``1,n,224``; none for a scalar."""
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    if not all(part.isdecimal() or part.isidentifier() for part in parts):
        raise ValueError(text)
    return tuple(_size(part) if part.isdecimal() else part for part in parts)


def _array(path: str) -> Any:
    import numpy as np

    from relax_egraph.ir.dtypes import from_file

    try:
        with Path(path).open("rb") as file:
            data: Any = np.load(file, allow_pickle=False)
    except Exception as error:  # numpy raises many kinds for other files
        problem = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise click.BadParameter(f"{path}: {problem}") from None
    if not isinstance(data, np.ndarray):
        raise click.BadParameter(f"{path} is an archive, needs one array (.npy)")
    return from_file(data)


def _ranges(text: str) -> list[tuple[int, int | None]]:
    """``1,2:64,65:`` is ``[(1, 1), (2, 64), (65, None)]``."""
    ranges: list[tuple[int, int | None]] = []
    for written in text.split(","):
        least, colon, most = written.partition(":")
        ranges.append((_size(least), (_size(most) if most else None) if colon else _size(least)))
    return ranges


size = _named("NAME=SIZE", "n=128", _size)
shape = _named("NAME=EXTENTS", "x=1,n,224", _extents)
array = _named("NAME=FILE.npy", "x=x.npy", _array)
variant = _named("SYMBOL=RANGES", "s=1,2:64,65:", _ranges)
