"""What readers of object files find: symbols, or a fault."""

from typing import NamedTuple


class ObjectSymbols(NamedTuple):
    """The global symbols that an object defines, and those that it needs from others."""

    defined: frozenset[str]
    needed: frozenset[str]


class Fault(Exception):
    """A defect of an object file."""


def need(holds: bool, what: str) -> None:
    """Raise a `Fault`, which says `what` is wrong, unless it `holds`."""
    if not holds:
        raise Fault(what)
