"""Which sources of this package a process runs: what is kept on disk is named by what made it."""

import os
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_SETTLED = 60
"""In seconds: what was changed later than so long before the import may not be what it read."""

_SUFFIXES = (".py", ".egg")
_PACKAGE = Path(__file__).parents[1]
_imported = time.time()


@cache
def sources_in(folders: tuple[str, ...]) -> tuple[str, ...] | None:
    """Names, sizes and times of all sources in `folders` of the package, and in folders there.

    That is what Python, too, tells by that they have changed.  ``None`` where the sources are not
    files, or are being edited.
    """
    found: list[str] = []
    try:
        for folder in folders:
            for entry in _files(_PACKAGE / folder):
                status = entry.stat()
                if status.st_mtime > _imported - _SETTLED:
                    return None
                name = os.path.relpath(entry.path, _PACKAGE)
                found.append(f"{name} {status.st_size} {status.st_mtime_ns}")
    except OSError:
        return None
    return tuple(sorted(found))


def _files(folder: str | Path) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(_SUFFIXES):
                yield entry
            elif entry.is_dir() and entry.name != "__pycache__":
                yield from _files(entry.path)
