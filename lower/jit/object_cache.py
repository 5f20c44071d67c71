"""A disk cache of machine code, keyed by hashes of its sources.

An entry is written to a temporary file and renamed, so readers see all of it or nothing; it has a
checksum, and damaged entries are ignored.  A read-only folder is no error.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path

ENVIRONMENT = "RELAX_EGRAPH_CACHE"
"""The environment variable of the folder; ``off`` disables the cache."""

DEFAULT_LIMIT = 256 << 20
"""The maximal bytes of the folder; beyond them the least recently used entries are removed."""

_SLACK = 64
"""The share of the limit that may be written before the folder is scanned again: a scan takes a
system call for each entry."""

_DIGEST_SIZE = 32
_SUFFIX, _ASIDE = ".o", ".aside"


def digest(*parts: str | bytes) -> str:
    """A hash that is unique to `parts`."""
    hashed = blake2b(digest_size=20)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        hashed.update(len(data).to_bytes(8, "little") + data)
    return hashed.hexdigest()


def default_folder() -> Path | None:
    """The folder in `ENVIRONMENT`, by default in the system's folder for a user's caches."""
    value = os.environ.get(ENVIRONMENT)
    if value:
        return None if value == "off" else _expanded(Path(value))
    return _expanded(_caches() / "objects")


@dataclass(slots=True)
class ObjectCache:
    """Entries in `folder`, or no cache if it is ``None``; `limit` is in bytes.

    `room` is the number of bytes that may be written before the next scan, so the folder may exceed
    its limit a little.
    """

    folder: Path | None
    limit: int = DEFAULT_LIMIT
    room: int = 0

    def get(self, key: str) -> bytes | None:
        """The entry of `key`, if it exists and is undamaged; it becomes the most recently used."""
        if self.folder is None:
            return None
        path = self._path(self.folder, key)
        try:
            stored = path.read_bytes()
        except OSError:
            return None
        checksum, data = stored[:_DIGEST_SIZE], stored[_DIGEST_SIZE:]
        if checksum != _checksum(data):
            return None
        with suppress(OSError):
            os.utime(path)
        return data

    def put(self, key: str, data: bytes) -> None:
        """Store `data` under `key`; failures are ignored."""
        if self.folder is None:
            return
        self.room -= _DIGEST_SIZE + len(data)
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            _write_aside(self._path(self.folder, key), _checksum(data) + data)

    def trim(self) -> None:
        """Remove the least recently used entries, until the folder is within its limit."""
        if self.folder is None or self.room >= 0:
            return
        self.room = self.limit // _SLACK
        with suppress(OSError):
            entries = sorted(_entries(self.folder))
            excess = sum(size for _, size, _ in entries) - self.limit
            for _, size, path in entries:
                if excess <= 0:
                    return
                os.unlink(path)
                excess -= size

    def _path(self, folder: Path, key: str) -> Path:
        return folder / f"{key}{_SUFFIX}"


def default_cache() -> ObjectCache:
    """The cache in `default_folder`, for the current environment."""
    return _cache_in(default_folder())


@cache
def _cache_in(folder: Path | None) -> ObjectCache:
    return ObjectCache(folder)


def _caches() -> Path:
    """The package's folder in the system's folder for a user's caches."""
    match sys.platform:
        case "win32":
            local = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
            return Path(local) / "relax-egraph" / "Cache"
        case "darwin":
            return Path("~/Library/Caches/relax-egraph")
        case _:
            return Path(os.environ.get("XDG_CACHE_HOME", "").strip() or "~/.cache") / "relax-egraph"


def _expanded(path: Path) -> Path | None:
    try:
        return path.expanduser()
    except RuntimeError:  # a user without a home
        return None


def _checksum(data: bytes) -> bytes:
    return blake2b(data, digest_size=_DIGEST_SIZE).digest()


def _entries(folder: Path) -> Iterator[tuple[float, int, str]]:
    """Last use, size and path of each entry; entries that vanish meanwhile are skipped."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith((_SUFFIX, _ASIDE)):
                with suppress(OSError):
                    status = entry.stat()
                    yield status.st_mtime, status.st_size, entry.path


def _write_aside(path: Path, data: bytes) -> None:
    handle, aside = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=_ASIDE)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(aside, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(aside)
        raise
