"""What commands are given: programs, executables, arrays, the profile of a machine."""

from pathlib import Path
from typing import Any

import click
import numpy as np

import relax_egraph as rx
from relax_egraph.extract import REFERENCE_PROFILE

EXECUTABLE = ".rxe"


def module_of(file: Path) -> rx.IRModule:
    """The program in `file`, in script form."""
    try:
        return rx.load_module(file)
    except UnicodeDecodeError:
        needed = f"a program in script form, or an executable ({EXECUTABLE})"
        raise click.BadParameter(f"{file} is no text: needs {needed}") from None


def machine_running(file: Path, function: str) -> rx.VirtualMachine:
    """A machine for `file`, a program or an executable, which has the function."""
    saved = file.suffix == EXECUTABLE
    executable = rx.load(file) if saved else rx.build(rx.optimize(module_of(file)))
    machine = rx.VirtualMachine(executable)
    if function not in machine:
        raise click.BadParameter(f"no function {function!r} in {file}", param_hint="--function")
    return machine


def array_of(text: str) -> tuple[str, Any]:
    """``x=x.npy`` is ``"x"`` and the array in that file."""
    name, equals, path = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"{text!r} is not of the form NAME=FILE.npy", param_hint="--input")
    try:
        return name, np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise click.BadParameter(f"{path}: {error}", param_hint="--input") from None


def size_of(text: str, option: str) -> tuple[str, int]:
    """``n=128`` is ``"n", 128``."""
    name, _, size = text.partition("=")
    if not size.isdecimal():
        message = f"{text!r} is not of the form NAME=SIZE, such as n=128"
        raise click.BadParameter(message, param_hint=option)
    return name, int(size)


def profile_of(named: str | None) -> rx.Profile:
    """The profile of a machine: from a file, the one that calibrate saved, or the reference."""
    if named is None:
        return REFERENCE_PROFILE
    return rx.calibrated() if named == "calibrated" else rx.Profile.read(Path(named))
