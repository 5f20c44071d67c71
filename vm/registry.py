"""Packed functions of the user, by name, for every machine."""

from collections.abc import Callable
from typing import Any, TypeVar

from relax_egraph.base.parameters import FLAG, NAME, takes

Packed = Callable[..., Any]
F = TypeVar("F", bound=Packed)

OWN = "vm.builtin."
"""What the names of the machine's own functions begin with."""

_REGISTERED: dict[str, Packed] = {}


@takes(name=NAME, override=FLAG)
def register_func(name: str, *, override: bool = False) -> Callable[[F], F]:
    """Make the decorated callable known to every machine built from now on as `name`.

    It gets numpy arrays, shapes as tuples of ints, ints, strings, and any other object as it is;
    what it returns is made such, arrays of other libraries too.  Constants cannot be written.
    Kernels of an executable come before it, ``VirtualMachine(packed=…)`` comes before both.

    Raises ``ValueError`` if the name is empty, that of a builtin, or taken, unless `override`;
    ``TypeError`` if what is decorated cannot be called.
    """
    if not name or name.startswith(OWN):
        why = f"names that begin with {OWN} are the machine's" if name else "it is empty"
        raise ValueError(f"{name!r} is no name for a packed function: {why}")

    def register(function: F) -> F:
        if not callable(function):
            raise TypeError(f"{name!r} is to be a packed function, and {function!r} is no callable")
        if name in _REGISTERED and not override:
            raise ValueError(f"the packed function {name!r} is registered already")
        _REGISTERED[name] = function
        return function

    return register


def registered(name: str) -> Packed | None:
    """The packed function registered as `name`, or ``None``."""
    return _REGISTERED.get(name)


def registered_names() -> tuple[str, ...]:
    """The names of all packed functions that are registered, sorted."""
    return tuple(sorted(_REGISTERED))


def unregister_func(name: str) -> None:
    """Forget the packed function `name`, if there is one; machines that have it keep it."""
    _REGISTERED.pop(name, None)
