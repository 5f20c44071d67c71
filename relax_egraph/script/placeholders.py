"""What the names of scripts are to Python itself, which evaluates annotations and decorators.

The body of a decorated function is read and never run, so that most names need no value at all.
"""

import inspect
import linecache
from types import FrameType
from typing import Any, NoReturn

from relax_egraph.errors import ScriptError, Span


class Name:
    """A name of the script language, as ``R.exp``; it has a meaning in a script only."""

    def __init__(self, name: str, meaning: str = "") -> None:
        self.name = name
        self.__doc__ = meaning or None

    def __getattr__(self, attribute: str) -> "Name":
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return Name(f"{self.name}.{attribute}")

    def __repr__(self) -> str:
        return self.name

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Refused with the place of the call."""
        _refuse(self.name, inspect.currentframe())


class Annotation(Name):
    """A name that Python meets in annotations: it takes anything."""

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """The whole annotation."""
        return Applied(self.name)

    def __getitem__(self, item: object) -> "Applied":
        return Applied(self.name)


class Applied:
    """A whole annotation; what it was made of is read where it stands."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"{self.name}(…)"


class Symbol:
    """A dimension symbol that Python sees: ``n = T.int64()``."""

    def _computed(self, *_: object) -> "Computed":
        return Computed()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _computed
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __neg__ = _computed


class Computed(Symbol):
    """What Python computes of symbols; it is read where it stands, this is nothing."""


class ScalarType(Annotation):
    """``T.int64``: an annotation."""

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """A symbol; of a value, the value."""
        return args[0] if args else Symbol()


class SymbolMaker(Name):
    """``T.var``."""

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """A symbol."""
        return Symbol()


def _refuse(name: str, frame: FrameType | None) -> NoReturn:
    caller = frame.f_back if frame else None
    message = f"{name} has no meaning outside of a script"
    if caller is None:
        raise ScriptError(Span("<unknown>", 1, 1), message, "")
    line, column = place_of(caller)
    file = caller.f_code.co_filename
    text = linecache.getline(file, line, caller.f_globals).rstrip("\n")
    note = "it is read, not run, in the body of what @R.function or @T.prim_func decorates"
    raise ScriptError(Span(file, line, column), message, text, note)


def place_of(frame: FrameType) -> tuple[int, int]:
    """The line and column, from 1, of what `frame` does now; the first column if not known."""
    positions = list(frame.f_code.co_positions())
    line, _, column, _ = positions[frame.f_lasti // 2]
    return line or frame.f_lineno, (column or 0) + 1
