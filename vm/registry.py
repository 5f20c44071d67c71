"""Packed functions of the user, by name, for every machine."""

from collections.abc import Callable
from typing import Any, TypeVar

Packed = Callable[..., Any]
F = TypeVar("F", bound=Packed)

_REGISTERED: dict[str, Packed] = {}


def register_func(name: str, *, override: bool = False) -> Callable[[F], F]:
    """Make the decorated callable known to every machine built from now on as `name`.

    Raises ``ValueError`` if the name is taken, unless `override`.
    """

    def register(function: F) -> F:
        if name in _REGISTERED and not override:
            raise ValueError(f"the packed function {name!r} is registered already")
        _REGISTERED[name] = function
        return function

    return register


def registered(name: str) -> Packed | None:
    """The packed function registered as `name`, or ``None``."""
    return _REGISTERED.get(name)


def unregister_func(name: str) -> None:
    """Forget the packed function `name`; machines that have it keep it."""
    _REGISTERED.pop(name, None)
