"""Python modules that a command imports first: they register functions that rules call."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click


def import_modules(modules: Sequence[str]) -> None:
    """Import `modules`, also from the current folder."""
    sys.path[:0] = [os.getcwd()] if modules else []
    for name in modules:
        try:
            import_module(name)
        except ImportError as problem:
            raise click.ClickException(f"{name} cannot be imported: {problem}") from None
