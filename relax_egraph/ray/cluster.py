"""The Ray cluster that this process uses."""

import builtins
import logging
import os
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from relax_egraph.errors import RelaxEgraphError

LOCAL = "local"
"""The address of a cluster of this machine alone, which is started and ended where it is used."""


def require_ray(who: str) -> None:
    """Raise ``ImportError`` with the remedy if Ray is not installed; `who` needs it."""
    if find_spec("ray") is None:
        raise ImportError(f"{who} needs the package ray: pip install 'relax-egraph[ray]'")


def ray_module(name: str = "ray") -> Any:
    """The module `name` of Ray: it is imported here alone, and absent when types are checked."""
    return import_module(name)


@contextmanager
def connected(address: str, **options: Any) -> Generator[None]:
    """Connect this process to the cluster at `address`, or to one that it starts if `LOCAL`.

    A connection that there is already is used and left open, whatever the address; another one is
    closed in the end, and a cluster that was started ends with it.  `options` are those of
    ``ray.init`` for a cluster that is started.  Raises `RelaxEgraphError` if none answers at the
    address, ``ImportError`` without Ray.
    """
    require_ray("a Ray cluster")
    ray = ray_module()
    if ray.is_initialized():
        yield
        return
    own_print = builtins.print
    try:
        if address == LOCAL:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent to anybody
            ray.init(LOCAL, include_dashboard=False, logging_level=logging.ERROR, **options)
        else:
            ray.init(address, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise RelaxEgraphError(f"no Ray cluster answers at {address!r}: {error}") from error
    try:
        yield
    finally:
        ray.shutdown()
        builtins.print = own_print  # Ray's progress bars have put another one in its place
