"""Options of passes, declared once with a type and a default, and set by a context."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Option:
    """A key of ``PassContext.config``, with the type of its values and its default."""

    key: str
    kind: type
    default: Any
    meaning: str


OPTIONS: dict[str, Option] = {}
"""The declared options, by key."""


def declare_option(key: str, kind: type, default: Any, meaning: str) -> Option:
    """Declare the option `key`, which begins with the pass: ``"fold_constant.growth_limit"``.

    The same declaration may be repeated; raises `ValueError` for a different one, and for a
    default of the wrong type.
    """
    option = Option(key, kind, default, meaning)
    _check(option, default)
    if OPTIONS.setdefault(key, option) != option:
        raise ValueError(f"the option {key!r} is declared twice, differently")
    return option


def check_option(key: str, value: Any) -> None:
    """Raise `ValueError` unless `key` is declared and `value` has its type."""
    if key not in OPTIONS:
        known = ", ".join(sorted(OPTIONS)) or "none"
        raise ValueError(f"no option {key!r} of passes; there are: {known}")
    _check(OPTIONS[key], value)


def _check(option: Option, value: Any) -> None:
    stray_bool = isinstance(value, bool) and option.kind is not bool
    if stray_bool or not isinstance(value, option.kind):
        raise ValueError(f"the option {option.key!r} is {value!r}, needs {option.kind.__name__}")
