"""Files of which readers see the old one or the whole new one."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident
from typing import BinaryIO


@contextmanager
def replacing(path: Path) -> Generator[BinaryIO]:
    """What is written here lies aside, and becomes the file at `path` when the block ends.

    If the block raises, the file at `path` is what it was and nothing is left aside.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}.{get_ident()}.part")
    try:
        with aside.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
