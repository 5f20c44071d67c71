"""Reads exported programs from files."""

import os
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram

from relax_egraph.errors import ModelError


def read(program: "str | os.PathLike[str] | ExportedProgram") -> ExportedProgram:
    """`program`, or what ``torch.export.save`` wrote to that path.

    Raises `ModelError` if the file has no exported program, ``OSError`` if it cannot be opened.
    """
    if isinstance(program, ExportedProgram):
        return program
    path = Path(program)
    with path.open("rb"):
        pass  # torch says of a missing file only that something is wrong with its archive
    try:
        loaded: Any = torch.export.load(path)
    except Exception as error:  # torch raises many kinds for other files
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(f"{path} has no exported program of torch: {reason}") from None
    return loaded
