"""Plug-ins: what installed packages register by entry points, loaded when it is needed.

    [project.entry-points."relax_egraph.operators"]
    acme = "acme.operators:OPERATORS"

A plug-in that fails is left out, with a warning that names it.
"""

from collections.abc import Callable
from typing import Any
from warnings import warn


class PluginWarning(UserWarning):
    """A plug-in is left out; the message says why."""


def add_plugins(group: str, add: Callable[[str, Any], None]) -> None:
    """Call `add` with the name and the value of each entry point of `group`, by name.

    Where an entry point does not load, or `add` fails, there is a `PluginWarning`.
    """
    from importlib.metadata import entry_points  # slow to import

    for point in sorted(entry_points(group=group), key=lambda point: (point.name, point.value)):
        try:
            add(point.name, point.load())
        except Exception as problem:
            package = f" of {point.dist.name} {point.dist.version}" if point.dist else ""
            warn(
                f"the plug-in {point.name!r}{package} is left out: {group} = {point.value!r}: "
                f"{type(problem).__name__}: {problem}",
                PluginWarning,
                stacklevel=2,
            )
