"""The text of modules, functions and parts of them, by the printer of the script package."""

from collections.abc import Callable
from importlib import import_module

from relax_egraph.base import notebook

_printers: list[Callable[[object], str]] = []


def print_with(printer: Callable[[object], str]) -> None:
    """Set the `printer` of modules and their parts; the script package calls this."""
    _printers[:] = [printer]


def text_of(part: object) -> str:
    """The text of a module, a function, a block, a binding or an expression."""
    if not _printers:
        import_module("relax_egraph.script")  # loaded on first use
    return _printers[0](part)


class Printed:
    """A part of a program: its text is that of a script."""

    __slots__ = ()

    def __repr__(self) -> str:
        return text_of(self).rstrip("\n")


class Shown(Printed):
    """A function or a module, whose text ``parse`` reads."""

    __slots__ = ()

    def script(self) -> str:
        """The text, which ``parse`` reads back."""
        return text_of(self)

    def show(self) -> None:
        """Print the text."""
        print(text_of(self), end="")

    def _repr_html_(self) -> str:
        return notebook.code(text_of(self))
