"""Modules in files: the text, and beside it an archive of the constants."""

import hashlib
import io
import os
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from relax_egraph.base.files import replacing
from relax_egraph.base.parameters import PATH, takes
from relax_egraph.errors import ScriptError, Span
from relax_egraph.ir.dtypes import from_file
from relax_egraph.ir.module import MODULE, IRModule
from relax_egraph.script.parser import parse
from relax_egraph.script.printer import print_with_constants

_HEADER = re.compile(r"# constants: (\S+) sha256=([0-9a-f]{64})\n")


@takes(module=MODULE, path=PATH)
def save_module(module: IRModule, path: str | os.PathLike[str]) -> None:
    """Write the text of `module` to `path`, and its constants to ``<path>.npz`` if it has any.

    Each file is written under another name and then renamed, the text last.  The text has the name
    and the digest of the archive, so that it is never read with the constants of another.
    """
    target = Path(path)
    text, constants = print_with_constants(module)
    if constants:
        archive = _archive(constants)
        beside = target.with_name(f"{target.name}.npz")
        _write(beside, archive)
        text = f"# constants: {beside.name} sha256={hashlib.sha256(archive).hexdigest()}\n{text}"
    _write(target, text.encode())


@takes(path=PATH)
def load_module(path: str | os.PathLike[str]) -> IRModule:
    """Read what `save_module` wrote, or any script without constants in an archive.

    Raises `ScriptError` if the text does not parse or the archive is not the one it names.
    """
    target = Path(path)
    text = target.read_text("utf-8")
    header = _HEADER.match(text)
    constants: list[npt.NDArray[Any]] = []
    if header:
        constants = _constants(target, text, header[1], header[2])
    return parse(text, filename=str(target), constants=constants)


def _constants(target: Path, text: str, name: str, digest: str) -> list[npt.NDArray[Any]]:
    def error(message: str) -> ScriptError:
        return ScriptError(Span(str(target), 1, 1), message, text.split("\n", 1)[0])

    if Path(name).name != name:
        raise error(f"the constants are in {name}, which is not beside the text")
    try:
        archive = target.with_name(name).read_bytes()
    except FileNotFoundError:
        raise error(f"the constants are in {name}, which is not there") from None
    if hashlib.sha256(archive).hexdigest() != digest:
        raise error(f"{name} does not hold the constants of this text: its digest differs")
    try:
        with np.load(io.BytesIO(archive), allow_pickle=False) as arrays:
            return [from_file(arrays[f"arr_{k}"]) for k in range(len(arrays.files))]
    except (ValueError, KeyError, zipfile.BadZipFile):
        raise error(f"{name} is no archive of constants") from None


def _archive(constants: Sequence[npt.NDArray[Any]]) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, *constants)
    return buffer.getvalue()


def _write(target: Path, data: bytes) -> None:
    with replacing(target) as file:
        file.write(data)
