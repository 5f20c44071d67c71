"""Keys of the plan cache: the text of everything that a plan depends on."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, cast

import sympy

from relax_egraph.base.sources import code_in
from relax_egraph.ir import dims
from relax_egraph.lower.jit.object_cache import digest

_FOLDERS = ("egraph", "extract", "ir", "lower/library", "optimize", "rules")
"""The folders of sources that plans depend on."""

_LIBRARIES = ("egglog", "highspy", "sympy")


class Nameless(Exception):
    """A value has no text that identifies it in every process."""


def name_of(*parts: object) -> str:
    """A name for `parts`, the same in every process; raises `Nameless`."""
    return digest(*map(text_of, parts))


@cache
def planner_version() -> str | None:
    """A name for the sources that make plans; ``None`` where they are no files, or being edited."""
    code = code_in(_FOLDERS, _LIBRARIES)
    return None if code is None else digest(*code)


def text_of(value: object) -> str:
    """A text that equal values share and different values do not.

    Raises `Nameless` for a value that compares by identity, such as a variable or a function, or
    by anything but its fields.
    """
    match value:
        case None | bool() | int() | float() | str():
            return repr(value)
        case tuple() | list():
            each = map(text_of, cast("tuple[object, ...] | list[object]", value))
            return f"({','.join(each)})"
        case frozenset() | set():
            each = map(text_of, cast("frozenset[object] | set[object]", value))
            return f"{{{','.join(sorted(each))}}}"
        case Mapping():
            pairs = cast("Mapping[object, object]", value).items()
            each = (f"{text_of(k)}:{text_of(v)}" for k, v in pairs)
            return f"{{{','.join(sorted(each))}}}"
        case sympy.Expr():
            return f"<{_dim_text(value)}>"
        case type():
            return value.__qualname__
        case _ if _compares_by_fields(value):
            record: Any = value
            each = (text_of(getattr(record, f.name)) for f in fields(record) if f.compare)
            return f"{type(record).__name__}({','.join(each)})"
        case _:
            raise Nameless(type(value).__name__)


def _compares_by_fields(value: Any) -> bool:
    return is_dataclass(value) and type(value).__hash__ is not object.__hash__


def _dim_text(value: sympy.Expr) -> str:
    try:
        return dims.text(value)
    except ValueError:
        raise Nameless(str(value)) from None
