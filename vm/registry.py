"""The global registry of packed functions of the user."""

from collections.abc import Callable
from typing import Any, TypeVar

from relax_egraph.base.parameters import FLAG, NAME, takes

Packed = Callable[..., Any]
F = TypeVar("F", bound=Packed)

OWN = "vm.builtin."
"""The name prefix of builtins."""

REGISTERED: dict[str, Packed] = {}


@takes(name=NAME, override=FLAG)
def register_func(name: str, *, override: bool = False) -> Callable[[F], F]:
    """Decorator: register a callable as the packed function `name` of machines created later.

    It gets numpy arrays, shapes as tuples of ints, ints, strings, and any other object unchanged;
    its result is converted to these, including arrays of other libraries.  Constants are
    read-only.  Kernels of an executable take precedence, ``VirtualMachine(packed=…)`` over both.

    Raises ``ValueError`` if the name is empty, has the prefix of builtins, or is in use, unless
    `override`; ``TypeError`` if the decorated object is not callable.
    """
    if not name or name.startswith(OWN):
        why = f"names that begin with {OWN} are the machine's" if name else "it is empty"
        raise ValueError(f"{name!r} is no name for a packed function: {why}")

    def register(function: F) -> F:
        if not callable(function):
            raise TypeError(f"{name!r} is to be a packed function, and {function!r} is no callable")
        if name in REGISTERED and not override:
            raise ValueError(f"the packed function {name!r} is registered already")
        REGISTERED[name] = function
        return function

    return register


def registered(name: str) -> Packed | None:
    """The packed function registered as `name`, or ``None``."""
    return REGISTERED.get(name)


def registered_names() -> tuple[str, ...]:
    """The names of all registered packed functions, sorted."""
    return tuple(sorted(REGISTERED))


def unregister_func(name: str) -> None:
    """Remove the packed function `name`, if it exists; existing machines keep it."""
    REGISTERED.pop(name, None)
