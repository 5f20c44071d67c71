"""The values of script names in Python, which evaluates annotations and decorators.

The body of a decorated function is parsed and never run, so that most names need no value.
"""

import inspect
import linecache
from types import FrameType
from typing import Any, NoReturn

from relax_egraph.errors import ScriptError, Span


class Name:
    """A name of the script language, as ``R.exp``, which has a meaning in scripts only."""

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
        """Raises an error with the place of the call."""
        _refuse(self.name, inspect.currentframe())


class Annotation(Name):
    """A name in annotations that Python evaluates: it accepts any arguments."""

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """The whole annotation."""
        return Applied(self.name)

    def __getitem__(self, item: object) -> "Applied":
        return Applied(self.name)


class Applied:
    """A whole annotation; its arguments are read from the source."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"{self.name}(…)"


class Symbol:
    """A dimension symbol in Python: ``n = T.int64()``."""

    def _computed(self, *_: object) -> "Computed":
        return Computed()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _computed
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __neg__ = _computed


class Computed(Symbol):
    """The result of arithmetic on symbols in Python, without content: the source is read."""


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
    """The current line and column of `frame`, from 1; the first column if it is unknown."""
    positions = list(frame.f_code.co_positions())
    line, _, column, _ = positions[frame.f_lasti // 2]
    return line or frame.f_lineno, (column or 0) + 1
