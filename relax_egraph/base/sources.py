"""The version of the sources that a process runs, for the keys of its caches on disk."""

import os
import time
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

_SETTLED = 60
"""In seconds: a file that changed later than this before the import may have been read earlier."""

_SUFFIXES = (".py", ".egg")
_PACKAGE = Path(__file__).parents[1]
_imported = time.time()


@cache
def sources_in(folders: tuple[str, ...]) -> tuple[str, ...] | None:
    """Names, sizes and times of all sources in `folders` of the package, and below.

    Python's own byte-code cache tells changes the same way.  ``None`` where the sources are not
    files, or are being edited.
    """
    versions: list[str] = []
    try:
        for folder in folders:
            for entry in _files(_PACKAGE / folder):
                status = entry.stat()
                if status.st_mtime > _imported - _SETTLED:
                    return None
                name = os.path.relpath(entry.path, _PACKAGE)
                versions.append(f"{name} {status.st_size} {status.st_mtime_ns}")
    except OSError:
        return None
    return tuple(sorted(versions))


def code_in(folders: tuple[str, ...], libraries: tuple[str, ...]) -> tuple[str, ...] | None:
    """The versions of `libraries`, and `sources_in` the folders, if these are known."""
    sources = sources_in(folders)
    if sources is None:
        return None
    return (*(f"{name} {version(name)}" for name in libraries), *sources)


def _files(folder: str | Path) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(_SUFFIXES):
                yield entry
            elif entry.is_dir() and entry.name != "__pycache__":
                yield from _files(entry.path)


@cache
def digest_of_code() -> str:
    """A digest of the contents of all sources of the package: the same on every machine.

    Where the sources are not files it is that of the version.
    """
    hashed = sha256()
    try:
        for entry in sorted(_files(_PACKAGE), key=lambda entry: entry.path):
            name = os.path.relpath(entry.path, _PACKAGE)
            hashed.update(f"{name} {entry.stat().st_size} ".encode() + Path(entry).read_bytes())
    except OSError:
        hashed.update(version("relax-egraph").encode())
    return hashed.hexdigest()
